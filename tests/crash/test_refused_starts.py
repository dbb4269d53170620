"""A store that cannot be used: each process says why in one line and ends, and changes nothing."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.storage.sqlite import SqliteRows
from tests.crash.installation import ROOT
from tests.mounts import SmallDisk, small_disk
from tests.storage.building import encoded, make_collection, write

COMMANDS = [["serve", "--port", "0"], ["worker"]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_store(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size="4m") as disk:
        yield disk


def make_store(home: Path) -> None:
    rows = SqliteRows(home / "bifocal.db")
    write(rows, make_collection(rows), *(encoded(str(i), "text " * 500) for i in range(20)))
    rows.close()


def refusal(home: Path, command: list[str], cache: Path) -> str:
    """What is said on standard error before the end with code 1."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BIFOCAL_")}
    ended = subprocess.run(
        [sys.executable, "-m", "indexer", *command],
        cwd=ROOT,
        env={**clean, "BIFOCAL_HOME": str(home), "BIFOCAL_CACHE": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    return ended.stderr


def written_by_a_newer_version(home: Path) -> None:
    connection = sqlite3.connect(home / "bifocal.db")
    connection.execute("PRAGMA user_version = 4711")
    connection.close()


def cut_short(home: Path) -> None:
    path = home / "bifocal.db"
    path.write_bytes(path.read_bytes()[:3_000])


def with_a_damaged_schema(home: Path) -> None:
    path = home / "bifocal.db"
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE documents", b"CREATE \xffABLE documents"))


@pytest.mark.parametrize("command", COMMANDS, ids=["serve", "worker"])
@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (written_by_a_newer_version, "use the version that wrote it, or a newer one"),
        (cut_short, "is damaged"),
        (with_a_damaged_schema, "is damaged"),
    ],
)
def test_a_store_that_cannot_be_read_is_refused_in_one_line(
    home: Path, tmp_path: Path, command: list[str], spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(home)
    before = (home / "bifocal.db").read_bytes()
    said = refusal(home, command, tmp_path)
    assert reason in said
    assert "bifocal.db" in said
    assert (home / "bifocal.db").read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS, ids=["serve", "worker"])
@pytest.mark.parametrize("has_store", [True, False], ids=["with a store", "empty"])
def test_a_read_only_folder_is_refused_in_one_line(
    disk: SmallDisk, tmp_path: Path, command: list[str], has_store: bool
) -> None:
    home = disk.folder / "home"
    if has_store:
        make_store(home)
    disk.make_read_only()
    said = refusal(home, command, tmp_path)
    assert str(home) in said
    assert "writ" in said or "Read-only" in said
