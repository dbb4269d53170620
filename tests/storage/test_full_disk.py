"""Index files on a disk that is full: the rows stay searchable, and it goes on when there is room."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.errors import StorageFull
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.embedded.dense import VIEWS
from app.storage.sqlite import SqliteRows
from tests.mounts import SmallDisk, small_disk
from tests.storage.building import encoded, make_collection, write
from tests.storage.exhaustive import assert_is_top, exhaustive, unit_query

N_DOCUMENTS = 1_100
"""More than the smallest approximate base has."""
QUERY = unit_query(0)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[SqliteRows]:
    """On a disk with room."""
    rows = SqliteRows(tmp_path / "store.db")
    documents = [encoded(f"d{i}", f"text number{i} of many", n_passages=1) for i in range(N_DOCUMENTS)]
    write(rows, make_collection(rows), *documents)
    yield rows
    rows.close()


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def open_index(rows: SqliteRows, disk: SmallDisk, opened: ExitStack) -> EmbeddedIndex:
    index = EmbeddedIndex(rows, disk.folder / "indexes", Settings(compact_tail=1, exact_limit=0))
    opened.callback(index.close)
    return index


def assert_finds_all(index: EmbeddedIndex, rows: SqliteRows) -> None:
    books = rows.collection("books")
    for view in VIEWS:
        truth = exhaustive(rows, books, view, QUERY)
        assert_is_top(index.nearest(books, view, QUERY, depth=5_000), truth, 5_000)
    assert len(index.matching(books, "many", depth=5_000).keys) == N_DOCUMENTS


@pytest.mark.parametrize("size", ["8k", "24k", "48k", "64k", "80k", "96k", "112k", "128k", "160k"])
def test_maintenance_on_a_full_disk_is_refused_and_goes_on_when_there_is_room(
    rows: SqliteRows, tmp_path: Path, opened: ExitStack, size: str
) -> None:
    """Each size ends another step: vectors, candidates, words."""
    disk = opened.enter_context(small_disk(tmp_path / "disk", size=size))
    index, books = open_index(rows, disk, opened), rows.collection("books")
    with pytest.raises(StorageFull):
        index.maintain(books)
    assert_finds_all(index, rows)
    disk.resize("50m")
    assert index.maintain(books)
    assert index.damages(books) == []
    for handle in (index, open_index(rows, disk, opened)):
        assert_finds_all(handle, rows)


def test_words_on_a_full_disk_are_refused_and_written_when_there_is_room(
    rows: SqliteRows, tmp_path: Path, opened: ExitStack
) -> None:
    disk = opened.enter_context(small_disk(tmp_path / "disk", size="8k"))
    index, books = open_index(rows, disk, opened), rows.collection("books")
    with pytest.raises(StorageFull, match="word index"):
        index.apply(books)
    disk.resize("50m")
    index.apply(books)
    assert_finds_all(index, rows)
