"""What is remembered between filters and facets: bounded, and never of another moment than asked."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import Collection, FacetValue
from app.filters import parse_filter
from app.storage.rows import Rows
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.columns import Columns
from app.storage.sqlite.conditions import ascending
from app.storage.sqlite.connection import Database
from app.storage.sqlite.matching import Memory, state_of
from app.storage.sqlite.metadata import field_key
from tests.storage.building import encoded, make_collection, write

EVEN = parse_filter({"field": "even", "eq": True})


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[SqliteRows]:
    rows = SqliteRows(tmp_path / "store.db")
    yield rows
    rows.close()


@pytest.fixture
def collection(rows: Rows) -> Collection:
    collection = make_collection(rows)
    write(rows, collection, *(encoded(str(i), "t", metadata={"n": i, "even": i % 2 == 0}) for i in range(20)))
    return collection


@pytest.fixture
def database(rows: Rows, collection: Collection, tmp_path: Path) -> Iterator[Database]:
    """Another handle on the store."""
    database = Database(tmp_path / "store.db")
    yield database
    database.close()


def test_an_older_snapshot_is_answered_as_it_was_and_spoils_nothing(
    rows: Rows, collection: Collection, database: Database
) -> None:
    """Keys are 1 to 20, the even numbers have odd keys; then one is deleted and 21 is new."""
    memory, columns = Memory(), Columns()
    before = list(range(1, 20, 2))
    after = [*range(3, 20, 2), 21]

    with database.read() as old:
        assert memory.keys(old, collection.key, EVEN).tolist() == before
        write(rows, collection, "0", encoded("new", "t", metadata={"even": True}))
        with database.read() as new:
            assert memory.keys(new, collection.key, EVEN).tolist() == after
            assert memory.keys(old, collection.key, EVEN).tolist() == before
            assert memory.keys(new, collection.key, EVEN).tolist() == after
            states = state_of(old, collection.key), state_of(new, collection.key)
            field = field_key(new, collection.key, "even")
            assert field is not None
            for connection, state, n_even in [
                (new, states[1], 10),
                (old, states[0], 10),
                (new, states[1], 10),
            ]:
                assert state is not None
                column, changes = columns.column(connection, collection.key, field, state)
                assert column.state == state
                assert len(changes.written) == 0
                assert column.keys[column.starts[1] :].tolist() == (after if state == states[1] else before)
                assert len(column.keys[column.starts[1] :]) == n_even


def test_answers_are_right_when_memory_holds_only_one(
    rows: Rows, collection: Collection, database: Database
) -> None:
    memory = Memory(max_bytes=1)
    conditions = [parse_filter({"field": "n", "lt": i}) for i in range(5)]
    for i, condition in [*enumerate(conditions)] * 3:
        with database.read() as connection:
            assert memory.keys(connection, collection.key, condition).tolist() == list(range(1, i + 1))


def test_columns_are_right_when_memory_holds_none(
    rows: Rows, collection: Collection, database: Database
) -> None:
    columns = Columns(max_bytes=1)
    for _ in range(2):
        with database.read() as connection:
            state, field = state_of(connection, collection.key), field_key(connection, collection.key, "n")
            assert state is not None
            assert field is not None
            column, _ = columns.column(connection, collection.key, field, state)
            assert column.values == list(range(20))


def test_a_store_that_forgot_old_deletions_answers_from_the_index(
    rows: SqliteRows, collection: Collection, database: Database
) -> None:
    """As if a base had been published twice since the answer was made."""
    assert rows.matching_documents(collection.key, EVEN).size == 10
    assert rows.facets(collection.key, ["even"])["even"].n_missing == 0
    write(rows, collection, "0", "1")
    with database.write() as connection:
        connection.execute("DELETE FROM tombstones")
        connection.execute("UPDATE collections SET tombstones_pruned = 100")
    assert rows.matching_documents(collection.key, EVEN).tolist() == list(range(3, 20, 2))
    facet = rows.facets(collection.key, ["even"])["even"]
    assert facet.values == (FacetValue(False, 9), FacetValue(True, 9))


@given(st.lists(st.integers(1, 40) | st.integers(10**9, 10**12)))
def test_ascending_gives_each_key_once(keys: list[int]) -> None:
    assert ascending(np.array(keys, np.int64)).tolist() == sorted(set(keys))
