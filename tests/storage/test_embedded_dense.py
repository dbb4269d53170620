from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Collection
from app.settings import Settings
from app.storage.embedded.dense import DenseIndex
from app.storage.embedded.masks import DocumentMask
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write
from tests.storage.exhaustive import assert_is_top, exhaustive, unit_query

QUERY = unit_query(0)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[SqliteRows]:
    rows = SqliteRows(tmp_path / "store.db")
    yield rows
    rows.close()


@pytest.fixture
def index(rows: SqliteRows, tmp_path: Path) -> Iterator[DenseIndex]:
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=1))
    yield index
    index.close()


@pytest.fixture
def books(rows: SqliteRows, index: DenseIndex) -> Collection:
    """30 documents in the base, 10 in the tail, deletions in both."""
    books = make_collection(rows)
    write(rows, books, *(encoded(f"d{i}", f"text number {i}") for i in range(30)))
    index.maintain(books)
    write(rows, books, *(encoded(f"e{i}", f"other text {i}") for i in range(10)))
    write(rows, books, "d0", "d9", "e3")
    return books


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(allowed=st.sets(st.integers(1, 45)), depth=st.integers(1, 100))
def test_a_filter_gives_the_best_of_what_it_lets_through(
    rows: SqliteRows, index: DenseIndex, books: Collection, allowed: set[int], depth: int
) -> None:
    """Document keys are 1 to 40; some of those allowed are dead, some never were."""
    found = index.nearest(books, "passages", QUERY, depth=depth, allowed=DocumentMask.of(allowed))
    assert_is_top(found, exhaustive(rows, books, "passages", QUERY, allowed=allowed), depth)


def test_memory_is_bounded_over_many_collections(rows: SqliteRows, tmp_path: Path) -> None:
    bound = 10_000
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=1), max_resident_bytes=bound)
    collections = [make_collection(rows, f"c{i}") for i in range(30)]
    for i, collection in enumerate(collections):
        write(rows, collection, *(encoded(f"d{j}", f"text {i} {j}") for j in range(20)))
    for collection in 2 * collections:
        found = index.nearest(collection, "passages", QUERY, depth=100)
        assert_is_top(found, exhaustive(rows, collection, "passages", QUERY), 100)
        assert 0 < index.resident_bytes <= bound


def test_rewriting_few_documents_for_ever_makes_a_new_base(rows: SqliteRows, tmp_path: Path) -> None:
    """Dead revisions fill the tail, too."""
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=30))
    books = make_collection(rows)
    published = []
    for i in range(20):
        write(rows, books, encoded("d", f"revision {i}"))
        published.append(index.maintain(books))
    assert any(published)
    assert index.stats(books, "passages").n_base <= 2


def test_a_few_new_vectors_wait_in_the_tail(rows: SqliteRows, tmp_path: Path) -> None:
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=30))
    books = make_collection(rows)
    write(rows, books, *(encoded(f"d{i}") for i in range(14)))
    assert not index.maintain(books)
    write(rows, books, encoded("last"))
    assert index.maintain(books)
    write(rows, books, *(encoded(f"e{i}") for i in range(14)))
    assert not index.maintain(books)


def test_a_fifth_deleted_is_reason_enough_for_a_new_base(rows: SqliteRows, index: DenseIndex) -> None:
    books = make_collection(rows)
    write(rows, books, *(encoded(f"d{i}") for i in range(20)))
    index.maintain(books)
    write(rows, books, *(f"d{i}" for i in range(4)))
    assert not index.maintain(books)
    write(rows, books, "d4")
    assert index.maintain(books)
    assert index.stats(books, "passages").n_deleted == 0
