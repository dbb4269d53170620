"""The index of metadata: which documents hold which value in which field. Written with the documents."""

import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from app.domain import Metadata
from app.filters import values_of

METADATA_2 = (
    """
    CREATE TABLE metadata_fields (
        key INTEGER PRIMARY KEY,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        name TEXT NOT NULL,
        UNIQUE (collection_key, name)
    )
    """,
    # `value` has no type, so that nothing is converted. The primary key is the table: documents that hold a
    # value, or values of a range, lie side by side. A document's rows are found through its metadata.
    """
    CREATE TABLE metadata_values (
        field_key INTEGER NOT NULL REFERENCES metadata_fields (key),
        kind INTEGER NOT NULL,
        value NOT NULL,
        document_key INTEGER NOT NULL,
        PRIMARY KEY (field_key, kind, value, document_key)
    ) WITHOUT ROWID
    """,
    # Grows when metadata change under a document key; all other changes show in the keys.
    "ALTER TABLE collections ADD COLUMN metadata_version INTEGER NOT NULL DEFAULT 0",
)

BACKFILL_BLOCK = 10_000
"""Rows of the index that are made at once."""

FieldValue = tuple[str, int, bool | int | float | str]
"""Name of the field, kind, value."""


def field_values(metadata: Metadata) -> Sequence[FieldValue]:
    return [
        (name, int(each.kind), each.value) for name, value in metadata.items() for each in values_of(value)
    ]


class MetadataIndex:
    """The index of one collection, within one transaction."""

    def __init__(self, connection: sqlite3.Connection, collection_key: int) -> None:
        self._connection = connection
        self._collection_key = collection_key
        self._field_keys: dict[str, int] = {}

    def add(self, document_key: int, values: Iterable[FieldValue]) -> None:
        self._connection.executemany(
            "INSERT INTO metadata_values VALUES (?, ?, ?, ?)", self.rows(document_key, values)
        )

    def remove(self, document_key: int, values: Iterable[FieldValue]) -> None:
        self._connection.executemany(
            "DELETE FROM metadata_values WHERE field_key = ? AND kind = ? AND value = ? AND document_key = ?",
            self.rows(document_key, values),
        )

    def replace(self, document_key: int, *, before: str, after: str) -> None:
        """`before` and `after` are the metadata in JSON."""
        old, new = set(field_values(json.loads(before))), set(field_values(json.loads(after)))
        self.remove(document_key, old - new)
        self.add(document_key, new - old)

    def rows(
        self, document_key: int, values: Iterable[FieldValue]
    ) -> Iterator[tuple[int, int, bool | int | float | str, int]]:
        for name, kind, value in values:
            yield self._field_key(name), kind, value, document_key

    def _field_key(self, name: str) -> int:
        key = self._field_keys.get(name)
        if key is None:
            key = self._field_keys[name] = self._stored_field_key(name)
        return key

    def _stored_field_key(self, name: str) -> int:
        found = field_key(self._connection, self._collection_key, name)
        if found is not None:
            return found
        inserted = self._connection.execute(
            "INSERT INTO metadata_fields (collection_key, name) VALUES (?, ?)", (self._collection_key, name)
        )
        assert inserted.lastrowid is not None
        return inserted.lastrowid


def field_key(connection: sqlite3.Connection, collection_key: int, name: str) -> int | None:
    row = connection.execute(
        "SELECT key FROM metadata_fields WHERE collection_key = ? AND name = ?", (collection_key, name)
    ).fetchone()
    return None if row is None else row[0]


def backfill(connection: sqlite3.Connection) -> None:
    """Fill the empty index from the documents."""
    fill_index(connection, [key for (key,) in connection.execute("SELECT key FROM collections").fetchall()])


def fill_index(connection: sqlite3.Connection, collection_keys: Iterable[int]) -> None:
    """Of collections that have nothing in it. Sorted before it is written: that is several times faster."""
    connection.execute("CREATE TEMP TABLE metadata_unsorted (field_key, kind, value, document_key)")
    for collection_key in collection_keys:
        rows = _rows_of(connection, MetadataIndex(connection, collection_key), collection_key)
        while block := list(itertools.islice(rows, BACKFILL_BLOCK)):
            connection.executemany("INSERT INTO metadata_unsorted VALUES (?, ?, ?, ?)", block)
    connection.execute("INSERT INTO metadata_values SELECT * FROM metadata_unsorted ORDER BY 1, 2, 3, 4")
    connection.execute("DROP TABLE metadata_unsorted")


def is_indexed(connection: sqlite3.Connection, collection_key: int) -> bool:
    """Whether the index has exactly what the documents' metadata say. Memory does not grow with them.

    Both are sets of rows, so sums of hashes compare them in any order.
    """
    indexed = sum(
        hash(tuple(row))
        for row in connection.execute(
            "SELECT f.name, v.kind, v.value, v.document_key FROM metadata_fields f "
            "JOIN metadata_values v ON v.field_key = f.key WHERE f.collection_key = ?",
            (collection_key,),
        )
    )
    said = sum(
        hash((name, kind, value, key))
        for key, metadata in connection.execute(
            "SELECT key, metadata FROM documents WHERE collection_key = ? AND metadata != '{}'",
            (collection_key,),
        )
        for name, kind, value in set(field_values(json.loads(metadata)))
    )
    return indexed == said


def _rows_of(
    connection: sqlite3.Connection, index: MetadataIndex, collection_key: int
) -> Iterator[tuple[int, int, bool | int | float | str, int]]:
    for document_key, metadata in connection.execute(
        "SELECT key, metadata FROM documents WHERE collection_key = ? AND metadata != '{}'",
        (collection_key,),
    ):
        yield from index.rows(document_key, field_values(json.loads(metadata)))
