"""What derived indexes follow: vectors and texts by key, and the keys that died."""

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.domain import View
from app.storage.rows import Keys, TextRow, Tombstones, VectorBlock
from app.storage.sqlite.connection import Database
from app.storage.sqlite.texts import passage_texts
from app.storage.sqlite.values import vectors_from_blobs

VECTORS_AFTER = {
    "passages": "SELECT v.key, v.document_key, v.vector FROM passage_vectors v "
    "WHERE v.collection_key = :collection AND v.key > :after AND v.key <= :up_to "
    "AND EXISTS (SELECT 1 FROM collections WHERE key = :collection AND dropped_at IS NULL) "
    "ORDER BY v.key LIMIT :block",
    "documents": "SELECT v.key, v.key, v.vector FROM document_vectors v "
    "WHERE v.collection_key = :collection AND v.key > :after AND v.key <= :up_to "
    "AND EXISTS (SELECT 1 FROM collections WHERE key = :collection AND dropped_at IS NULL) "
    "ORDER BY v.key LIMIT :block",
}
VECTORS_BY_KEY = {
    "passages": "SELECT v.key, v.document_key, v.vector FROM passage_vectors v "
    "JOIN collections c ON c.key = v.collection_key "
    "WHERE v.key IN (SELECT value FROM json_each(:keys)) AND c.dropped_at IS NULL ORDER BY v.key",
    "documents": "SELECT v.key, v.key, v.vector FROM document_vectors v "
    "JOIN collections c ON c.key = v.collection_key "
    "WHERE v.key IN (SELECT value FROM json_each(:keys)) AND c.dropped_at IS NULL ORDER BY v.key",
}
MAX_KEY = {
    "passages": "SELECT max_passage_key FROM collections WHERE key = ?",
    "documents": "SELECT max_document_key FROM collections WHERE key = ?",
}
LARGEST_KEY = 2**63 - 1


class FeedRows:
    _database: Database

    def data_version(self) -> int:
        return self._database.data_version()

    def vectors_after(
        self, collection_key: int, view: View, key: int, *, up_to: int | None = None, block: int = 4096
    ) -> Iterator[VectorBlock]:
        """Each block is its own snapshot: a key's vector never changes, and no reader holds up the log."""
        while True:
            rows = self._plain_rows(
                VECTORS_AFTER[view],
                {"collection": collection_key, "after": key, "up_to": _bound(up_to), "block": block},
            )
            if rows:
                yield _vector_block(rows)
            if len(rows) < block:
                return
            key = rows[-1][0]

    def vectors_by_key(self, view: View, keys: Sequence[int]) -> VectorBlock:
        wanted = json.dumps([int(key) for key in keys])
        return _vector_block(self._plain_rows(VECTORS_BY_KEY[view], {"keys": wanted}))

    def texts_after(
        self, collection_key: int, key: int, *, up_to: int | None = None, block: int = 1024
    ) -> Iterator[Sequence[TextRow]]:
        while True:
            texts = self._text_block(collection_key, key, up_to=_bound(up_to), block=block)
            if texts:
                yield texts
            if len(texts) < block:
                return
            key = texts[-1].key

    def max_key(self, collection_key: int, view: View) -> int:
        with self._database.read() as connection:
            row = connection.execute(MAX_KEY[view], (collection_key,)).fetchone()
        return 0 if row is None else row[0]

    def tombstones_after(self, collection_key: int, view: View, sequence: int) -> Tombstones:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT document_key, first_passage_key, n_passages FROM tombstones "
                "WHERE collection_key = ? AND sequence > ?",
                (collection_key, sequence),
            ).fetchall()
            (newest,) = connection.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'tombstones'"
            ).fetchone()
            pruned = connection.execute(
                "SELECT tombstones_pruned FROM collections WHERE key = ?", (collection_key,)
            ).fetchone()
        return Tombstones(
            sequence=newest,
            keys=dead_keys([tuple(row) for row in rows], view),
            is_complete=sequence == 0 or pruned is None or sequence >= pruned[0],
        )

    def _plain_rows(self, query: str, parameters: Mapping[str, object]) -> list[tuple[int, int, bytes]]:
        """As tuples, which are faster to make than named rows."""
        with self._database.read() as connection:
            cursor = connection.cursor()
            cursor.row_factory = None
            return cursor.execute(query, parameters).fetchall()

    def _text_block(self, collection_key: int, key: int, *, up_to: int, block: int) -> Sequence[TextRow]:
        with self._database.read() as connection:
            # The vectors' index is the list of a collection's passages; their rows are not read.
            rows = connection.execute(
                "SELECT v.key, p.document_key, d.title, p.start_char, p.end_char FROM passage_vectors v "
                "JOIN passages p ON p.key = v.key JOIN documents d ON d.key = p.document_key "
                "WHERE v.collection_key = :collection AND v.key > :after AND v.key <= :up_to "
                "AND EXISTS (SELECT 1 FROM collections WHERE key = :collection AND dropped_at IS NULL) "
                "ORDER BY v.key LIMIT :block",
                {"collection": collection_key, "after": key, "up_to": up_to, "block": block},
            ).fetchall()
            texts = passage_texts(connection, rows)
        return [TextRow(row["key"], row["document_key"], row["title"], texts[row["key"]]) for row in rows]


def _bound(up_to: int | None) -> int:
    return LARGEST_KEY if up_to is None else up_to


def _vector_block(rows: Sequence[tuple[int, int, bytes]]) -> VectorBlock:
    if not rows:
        none = np.empty(0, np.int64)
        return VectorBlock(none, none, np.empty((0, 0), np.float16))
    keys, document_keys, blobs = zip(*rows, strict=True)
    return VectorBlock(np.array(keys, np.int64), np.array(document_keys, np.int64), vectors_from_blobs(blobs))


def dead_keys(tombstones: Sequence[tuple[int, int, int]], view: View) -> Keys:
    """`tombstones` are (document key, first passage key, n_passages)."""
    if view == "documents":
        return np.array([document_key for document_key, _, _ in tombstones], np.int64)
    first, n_keys = np.array([row[1:] for row in tombstones], np.int64).reshape(-1, 2).T  # (t,) each
    ends = np.cumsum(n_keys)
    return np.repeat(first - (ends - n_keys), n_keys) + np.arange(n_keys.sum())
