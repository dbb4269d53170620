"""Documents and passages as readers see them."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from app.domain import Document, DocumentHead, Passage, StoredDocument, StoredPassage, Utf16
from app.errors import DocumentNotFound
from app.filters import Filter
from app.storage.rows import Keys
from app.storage.sqlite.connection import Database
from app.storage.sqlite.matching import Memory
from app.storage.sqlite.texts import passage_texts, passages_in_utf16, text_lengths, whole_text
from app.storage.sqlite.times import from_us
from app.storage.sqlite.values import from_json

SORTED_KEYS = 5_000
"""Documents that satisfy a condition, up to which a page of them is found by sorting their ids. More of them
lie so densely that walking along all ids is shorter."""


class DocumentRows:
    _database: Database
    _memory: Memory

    def document(self, collection_key: int, document_id: str) -> StoredDocument:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT d.* FROM documents d JOIN collections c ON c.key = d.collection_key "
                "WHERE d.collection_key = ? AND d.id = CAST(? AS TEXT) AND c.dropped_at IS NULL",
                (collection_key, _searchable(document_id)),
            ).fetchone()
            if row is None:
                raise DocumentNotFound(f"there is no document {document_id!r} in the collection")
            return _stored_document(row, whole_text(connection, row["key"]))

    def content_hashes(self, collection_key: int, document_ids: Iterable[str]) -> dict[str, bytes]:
        hashes: dict[str, bytes] = {}
        with self._database.read() as connection:
            for document_id in document_ids:
                row = connection.execute(
                    "SELECT d.content_hash FROM documents d JOIN collections c ON c.key = d.collection_key "
                    "WHERE d.collection_key = ? AND d.id = CAST(? AS TEXT) AND c.dropped_at IS NULL",
                    (collection_key, _searchable(document_id)),
                ).fetchone()
                if row is not None:
                    hashes[document_id] = row["content_hash"]
        return hashes

    def documents(
        self,
        collection_key: int,
        *,
        after: str | None = None,
        limit: int = 100,
        condition: Filter | None = None,
    ) -> Sequence[DocumentHead]:
        with self._database.read() as connection:
            if condition is not None:
                among = self._memory.keys(connection, collection_key, condition)
                rows = _page_among(connection, collection_key, among, after=after, limit=limit)
            else:
                rows = connection.execute(
                    "SELECT d.* FROM documents d JOIN collections c ON c.key = d.collection_key "
                    "WHERE d.collection_key = ? AND d.id > CAST(? AS TEXT) AND c.dropped_at IS NULL "
                    "ORDER BY d.id LIMIT ?",
                    (collection_key, _searchable(after or ""), limit),
                ).fetchall()
            return _heads(connection, rows)

    def documents_by_key(self, document_keys: Sequence[int]) -> dict[int, DocumentHead]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT d.* FROM documents d JOIN collections c ON c.key = d.collection_key "
                "WHERE d.key IN (SELECT value FROM json_each(?)) AND c.dropped_at IS NULL",
                (json.dumps([int(key) for key in document_keys]),),
            ).fetchall()
            return {head.key: head for head in _heads(connection, rows)}

    def passages_by_key(
        self, passage_keys: Sequence[int], *, with_utf16: bool = False
    ) -> dict[int, StoredPassage]:
        with self._database.read() as connection:
            wanted = json.dumps([int(key) for key in passage_keys])
            rows = connection.execute(
                "SELECT p.key, p.document_key, p.start_char, p.end_char, p.n_tokens, p.page, "
                "d.id, d.title, d.metadata "
                "FROM passages p JOIN documents d ON d.key = p.document_key "
                "JOIN collections c ON c.key = d.collection_key "
                "WHERE p.key IN (SELECT value FROM json_each(?)) AND c.dropped_at IS NULL",
                (wanted,),
            ).fetchall()
            texts = passage_texts(connection, rows)
            places = passages_in_utf16(connection, rows) if with_utf16 else {}
        return {row["key"]: _stored_passage(row, texts[row["key"]], places.get(row["key"])) for row in rows}


def _searchable(document_id: str) -> bytes:
    """For `CAST(? AS TEXT)`. A lone surrogate keeps its place in code point order and equals no stored id."""
    return document_id.encode(errors="surrogatepass")


def _page_among(
    connection: sqlite3.Connection, collection_key: int, among: Keys, *, after: str | None, limit: int
) -> Sequence[sqlite3.Row]:
    if len(among) > SORTED_KEYS:
        among = _next_keys(connection, collection_key, among, after=after, limit=limit)
    return connection.execute(
        "SELECT * FROM documents WHERE key IN (SELECT value FROM json_each(?)) AND id > CAST(? AS TEXT) "
        "ORDER BY id LIMIT ?",
        (json.dumps(among.tolist()), _searchable(after or ""), limit),
    ).fetchall()


def _next_keys(
    connection: sqlite3.Connection, collection_key: int, among: Keys, *, after: str | None, limit: int
) -> Keys:
    """The first `limit` of them by id."""
    keys = connection.execute(
        "SELECT key FROM documents WHERE collection_key = ? AND id > CAST(? AS TEXT) ORDER BY id",
        (collection_key, _searchable(after or "")),
    )
    found = np.empty(0, np.int64)
    while len(found) < limit and (block := keys.fetchmany(SORTED_KEYS)):
        listed = np.array([key for (key,) in block], np.int64)
        found = np.concatenate([found, listed[np.isin(listed, among)]])
    return found[:limit]


def _heads(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> Sequence[DocumentHead]:
    n_chars = text_lengths(connection, [row["key"] for row in rows])
    return [
        DocumentHead(
            key=row["key"],
            id=row["id"],
            title=row["title"],
            metadata=from_json(row["metadata"]),
            n_chars=n_chars[row["key"]],
            n_passages=row["n_passages"],
            n_tokens=row["n_tokens"],
            unknown_share=row["unknown_share"],
            created_at=from_us(row["created_at"]),
            updated_at=from_us(row["updated_at"]),
        )
        for row in rows
    ]


def _stored_document(row: sqlite3.Row, text: str) -> StoredDocument:
    return StoredDocument(
        key=row["key"],
        document=Document(
            id=row["id"],
            text=text,
            title=row["title"],
            metadata=from_json(row["metadata"]),
            page_starts=tuple(from_json(row["page_starts"])),
        ),
        n_passages=row["n_passages"],
        n_tokens=row["n_tokens"],
        unknown_share=row["unknown_share"],
        created_at=from_us(row["created_at"]),
        updated_at=from_us(row["updated_at"]),
    )


def _stored_passage(row: sqlite3.Row, text: str, utf16: Utf16 | None) -> StoredPassage:
    return StoredPassage(
        key=row["key"],
        document_key=row["document_key"],
        document_id=row["id"],
        title=row["title"],
        metadata=from_json(row["metadata"]),
        passage=Passage(row["start_char"], row["end_char"], row["n_tokens"], row["page"]),
        text=text,
        utf16=utf16,
    )
