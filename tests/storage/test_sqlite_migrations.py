import multiprocessing
import sqlite3
from pathlib import Path
from threading import Thread

import pytest

from app.domain import Metadata, SearchSettings
from app.errors import SchemaTooNew
from app.filters import parse_filter
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.connection import Database
from app.storage.sqlite.migrations import MIGRATIONS
from tests.storage.building import encoded, make_collection, write
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


DROP_LATER = (
    "DROP TABLE classifier_weights; DROP TABLE classifiers; DROP TABLE api_keys; DROP TABLE aliases; "
    "DROP INDEX collections_standby; ALTER TABLE collections DROP COLUMN standby_of; "
    "ALTER TABLE collections DROP COLUMN is_building; ALTER TABLE documents DROP COLUMN copied_from; "
)


def undo_metadata_index(path: Path) -> None:
    """Back to schema 1."""
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TABLE metadata_values; DROP TABLE metadata_fields; "
        "ALTER TABLE collections DROP COLUMN metadata_version; "
        "ALTER TABLE collections DROP COLUMN search_settings; DROP TABLE job_reports; "
        f"{DROP_LATER} PRAGMA user_version = 1"
    )
    connection.close()


def test_metadata_of_a_store_of_schema_1_are_indexed_when_it_is_opened(path: Path) -> None:
    rows = SqliteRows(path)
    for name in ("books", "films"):
        collection = make_collection(rows, name)
        metadata: Metadata = {"year": 2020, "tags": ["a", "2024-01-01", None], "empty": []}
        write(
            rows, collection, encoded("a", metadata=metadata), encoded("b"), encoded("c", metadata={"x": 1})
        )
    rows.close()
    undo_metadata_index(path)
    rows = SqliteRows(path)
    condition = parse_filter({"field": "tags", "gte": "2023-12-31"})
    for collection in rows.collections():
        (key,) = rows.matching_documents(collection.key, condition)
        assert key == rows.document(collection.key, "a").key
    rows.close()
    assert_sound(path)


def test_collections_of_schema_2_have_default_search_settings(path: Path) -> None:
    rows = SqliteRows(path)
    made = make_collection(rows)
    rows.close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "ALTER TABLE collections DROP COLUMN search_settings; DROP TABLE job_reports; "
        f"{DROP_LATER} PRAGMA user_version = 2"
    )
    connection.close()
    rows = SqliteRows(path)
    assert rows.collections() == [made]
    assert made.search == SearchSettings()
    rows.close()


def test_a_process_waits_while_another_one_migrates(path: Path) -> None:
    SqliteRows(path).close()
    undo_metadata_index(path)
    holder = Database(path)
    opened: list[SqliteRows] = []
    with holder.write():
        opening = Thread(target=lambda: opened.append(SqliteRows(path)))
        opening.start()
        opening.join(timeout=0.2)
        assert opened == []
    opening.join()
    holder.close()
    opened[0].close()
    assert pragma(path, "user_version") == len(MIGRATIONS)
