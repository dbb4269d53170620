import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from app.errors import SchemaTooNew
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.migrations import MIGRATIONS
from tests.storage.building import make_collection
from tests.storage.consistency import assert_sound


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "store.db"


def pragma(path: Path, name: str) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


def test_a_new_store_has_the_newest_schema(path: Path) -> None:
    SqliteRows(path).close()
    assert pragma(path, "user_version") == len(MIGRATIONS)
    assert pragma(path, "journal_mode") == "wal"
    assert_sound(path)


def test_a_store_of_a_newer_version_is_refused_naming_both(path: Path) -> None:
    SqliteRows(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 4711")
    connection.close()
    with pytest.raises(SchemaTooNew, match=rf"4711.* {len(MIGRATIONS)}"):
        SqliteRows(path)
    assert pragma(path, "user_version") == 4711


def test_opening_again_changes_nothing(path: Path) -> None:
    rows = SqliteRows(path)
    made = make_collection(rows)
    rows.close()
    before = path.read_bytes()
    again = SqliteRows(path)
    assert again.collections() == [made]
    again.close()
    assert path.read_bytes() == before


def create(path: Path) -> None:
    rows = SqliteRows(path)
    make_collection(rows)
    rows.close()


def test_processes_that_create_a_store_at_once_share_it(path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    creators = [spawn.Process(target=create, args=(path,)) for _ in range(4)]
    for creator in creators:
        creator.start()
    for creator in creators:
        creator.join()
    assert [creator.exitcode for creator in creators] == [0] * 4
    rows = SqliteRows(path)
    assert len(rows.collections()) == 1
    rows.close()
    assert_sound(path)
