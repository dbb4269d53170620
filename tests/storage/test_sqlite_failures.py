"""What happens to a store on a full disk, without permissions, or when its file is not what it should be."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.domain import JobInput, JobKind
from app.errors import StorageDamaged, StorageError, StorageFull
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write
from tests.storage.consistency import assert_sound, assert_vectors_belong_to_texts

UNPRIVILEGED_USER = 65534

TRY_TO_WRITE = """
import os, sys
from pathlib import Path
from app.domain import CollectionSettings
from app.errors import StorageReadOnly
from app.storage.sqlite import SqliteRows
if os.getuid() == 0:
    os.setuid(int(sys.argv[2]))
try:
    rows = SqliteRows(Path(sys.argv[1]))
    rows.create_collection("new", CollectionSettings(), fingerprint="f", model="m")
except StorageReadOnly as error:
    print("read-only:", error)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """`tmp_path` is closed to other users."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_write_into_a_full_disk_is_refused_as_a_whole(path: Path) -> None:
    rows = SqliteRows(path, max_size_bytes=400_000)
    collection = make_collection(rows)
    for i in range(30):
        write(rows, collection, encoded(f"{i} a", "x" * 2_000), encoded(f"{i} b", "y" * 2_000))
    too_large = encoded("c", "z" * 400_000)
    with pytest.raises(StorageFull, match="no space left"):
        write(rows, collection, encoded("0 a", "new"), too_large, encoded("d"))
    assert rows.collection_stats(collection.key).n_documents == 60
    assert rows.document(collection.key, "0 a").document.text == "x" * 2_000
    assert_vectors_belong_to_texts(rows, collection)
    rows.close()
    assert_sound(path)


def test_a_job_that_does_not_fit_is_not_acknowledged(path: Path) -> None:
    rows = SqliteRows(path, max_size_bytes=400_000)
    collection = make_collection(rows)
    with pytest.raises(StorageFull):
        rows.submit_job(
            collection.key, JobKind.FILES, [JobInput(0, b"x" * 300_000), JobInput(1, b"x" * 300_000)]
        )
    assert rows.jobs() == []
    small = rows.submit_job(collection.key, JobKind.FILES, [JobInput(0, b"x" * 1000)])
    assert rows.jobs() == [small]
    rows.close()


def test_a_full_store_can_be_emptied(path: Path) -> None:
    rows = SqliteRows(path, max_size_bytes=600_000)
    collection = make_collection(rows)
    write(rows, collection, encoded("a", "x" * 300_000))
    with pytest.raises(StorageFull):
        write(rows, collection, encoded("b", "x" * 300_000))
    rows.drop_collection(collection.name)
    assert rows.purge_dropped() == [collection.key]
    write(rows, make_collection(rows), encoded("a", "x" * 300_000))
    rows.close()
    assert_sound(path)


def test_purging_gives_space_back_to_the_file_system(path: Path) -> None:
    rows = SqliteRows(path)
    collection = make_collection(rows)
    write(rows, collection, *[encoded(str(i), "x" * 20_000) for i in range(100)])
    rows.drop_collection(collection.name)
    rows.purge_dropped()
    rows.close()
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("mode", [0o444, 0o000], ids=["not writable", "not readable"])
def test_a_store_without_write_permission_is_refused_clearly(public_folder: Path, mode: int) -> None:
    path = public_folder / "store.db"
    SqliteRows(path).close()
    path.chmod(mode)
    assert try_to_write_as_somebody_else(path).startswith(f"read-only: {path}")


def test_a_store_in_a_folder_without_write_permission_is_refused_clearly(public_folder: Path) -> None:
    public_folder.chmod(0o555)
    assert try_to_write_as_somebody_else(public_folder / "store.db").startswith(f"read-only: {public_folder}")
    assert try_to_write_as_somebody_else(public_folder / "new" / "store.db").startswith(
        "read-only: the folder"
    )


def try_to_write_as_somebody_else(path: Path) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", TRY_TO_WRITE, str(path), str(UNPRIVILEGED_USER)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return finished.stdout


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StorageDamaged, match=r"store\.db"):
        SqliteRows(path)
    assert path.read_bytes() == b"no database at all" * 1000


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StorageDamaged, match="not a store"):
        SqliteRows(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


def test_a_damaged_page_is_reported_as_damage(path: Path) -> None:
    rows = SqliteRows(path)
    collection = make_collection(rows)
    write(rows, collection, *[encoded(str(i), f"text {i}" * 100) for i in range(300)])
    rows.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StorageDamaged, match=r"store\.db"):
        SqliteRows(path).documents(collection.key, limit=1000)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    rows = SqliteRows(path)
    assert rows.collections() == []
    rows.close()


def test_a_folder_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match="not a file"):
        SqliteRows(path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(StorageError, match="not a folder"):
        SqliteRows(tmp_path / "home" / "store.db")


def test_closed_rows_say_so(path: Path) -> None:
    rows = SqliteRows(path)
    rows.close()
    for ask in (rows.collections, rows.data_version, lambda: make_collection(rows)):
        with pytest.raises(StorageError, match="has been closed"):
            ask()
