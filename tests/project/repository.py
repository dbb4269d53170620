"""The repository as its tests read it."""

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file under version control, or about to be."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = (ROOT / name for name in sorted(listing.stdout.split("\0")) if name)
    return tuple(path for path in paths if path.is_file())


def documents() -> list[Path]:
    """The Markdown files written by this project."""
    return [path for path in tracked_files() if path.suffix == ".md" and "tests" not in path.parts]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pyproject() -> dict[str, Any]:
    return tomllib.loads(read("pyproject.toml"))


def package_name(requirement: str) -> str:
    """
    >>> package_name("uvicorn>=0.54,<1")
    'uvicorn'
    """
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None, requirement
    return match.group().lower()
