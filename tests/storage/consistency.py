"""Invariants of an SQLite store that hold after whatever happened to it."""

import json
import sqlite3
from pathlib import Path

import numpy as np

from app.domain import Collection
from app.filters import values_of
from app.storage.sqlite import SqliteRows
from tests.storage.building import unit_vectors


def assert_sound(path: Path) -> None:
    """SQLite's own checks, and every counter equal to what it counts."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for key, *counters in connection.execute(
            "SELECT key, n_documents, n_passages, n_tokens, size_bytes FROM collections "
            "WHERE dropped_at IS NULL"
        ).fetchall():
            counted = connection.execute(
                "SELECT count(*), total(n_passages), total(n_tokens), total(size_bytes) FROM documents "
                "WHERE collection_key = ?",
                (key,),
            ).fetchone()
            assert tuple(counters) == counted
            assert_metadata_are_indexed(connection, key)
        for table in ("passages", "passage_vectors"):
            assert connection.execute(
                f"SELECT (SELECT count(*) FROM {table}) - (SELECT total(n_passages) FROM documents)"
            ).fetchone() == (0,)
        assert connection.execute(
            "SELECT count(*) FROM jobs "
            "WHERE kind NOT IN ('evaluation', 'reindex') "
            "AND n_done != (SELECT count(*) FROM outcomes WHERE job_key = jobs.key)"
        ).fetchone() == (0,)
    finally:
        connection.close()


def assert_metadata_are_indexed(connection: sqlite3.Connection, collection_key: int) -> None:
    """The index holds exactly what the documents' metadata say."""
    indexed = connection.execute(
        "SELECT f.name, v.kind, v.value, v.document_key FROM metadata_fields f "
        "JOIN metadata_values v ON v.field_key = f.key WHERE f.collection_key = ?",
        (collection_key,),
    ).fetchall()
    documents = connection.execute(
        "SELECT key, metadata FROM documents WHERE collection_key = ?", (collection_key,)
    ).fetchall()
    assert set(indexed) == {
        (name, int(each.kind), each.value, key)
        for key, metadata in documents
        for name, value in json.loads(metadata).items()
        for each in values_of(value)
    }


def assert_vectors_belong_to_texts(rows: SqliteRows, collection: Collection) -> None:
    """`building.encoded` makes the vectors from the text, so a mix of revisions would show."""
    texts: dict[int, str] = {}
    for stored in rows.documents(collection.key, limit=1_000_000):
        texts[stored.key] = rows.document(collection.key, stored.id).document.text
        expected = unit_vectors(stored.n_passages + 1, seed=texts[stored.key])
        assert (rows.vectors_by_key("documents", [stored.key]).vectors[0] == expected[0]).all()
    keys = [block.keys for block in rows.vectors_after(collection.key, "passages", 0)]
    for passage in rows.passages_by_key(np.concatenate([np.empty(0, int), *keys]).tolist()).values():
        text = texts[passage.document_key]
        assert passage.text == text[passage.passage.start : passage.passage.end]
