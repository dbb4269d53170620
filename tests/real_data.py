"""Public data sets, which lie outside the project."""

import os
from pathlib import Path

import pytest

from tests.project.repository import ROOT


def real_file(path: str) -> Path:
    """In the folder that BIFOCAL_DATA names. Skips the test where it is missing."""
    file = Path(os.environ.get("BIFOCAL_DATA", ROOT.parent / "shared" / "data")) / path
    if not file.exists():
        pytest.skip(f"needs {file}: set BIFOCAL_DATA to a folder with {path}")
    return file
