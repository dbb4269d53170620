"""The one write path of documents: changes and the outcomes of their job, in one transaction."""

import dataclasses
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain import Outcome
from app.errors import BadDocument, BadVector, DocumentNotFound
from app.storage.rows import EncodedDocument, MetadataUpdate, Vectors
from app.storage.sqlite.connection import Database
from app.storage.sqlite.jobs import require_leased, store_outcomes
from app.storage.sqlite.metadata import FieldValue, MetadataIndex, field_values
from app.storage.sqlite.texts import insert_text
from app.storage.sqlite.times import now_us
from app.storage.sqlite.values import checked_vectors, from_json, metadata_to_json, to_utf8

Change = EncodedDocument | MetadataUpdate | str


class WritingRows:
    _database: Database

    def write_documents(
        self,
        collection_key: int,
        changes: Sequence[Change],
        *,
        job_id: str,
        worker: str,
        outcomes: Sequence[Outcome],
    ) -> None:
        # What can be refused or takes long is done before the file is locked for other writers.
        prepared = {id_: _prepared(change) for id_, change in _last_changes(changes).items()}
        with self._database.write() as connection:
            job = require_leased(connection, job_id, worker, collection_key=collection_key)
            revisions = Revisions(connection, collection_key, now_us())
            for document_id, change in prepared.items():
                match change:
                    case Revision():
                        revisions.replace(document_id, change)
                    case MetadataChange():
                        revisions.update_metadata(document_id, change)
                    case None:
                        revisions.delete(document_id)
            revisions.count()
            store_outcomes(connection, job, outcomes)

    def rewrite_documents(self, collection_key: int, documents: Sequence[EncodedDocument]) -> None:
        """Replace passages and vectors of documents whose content stays. By the holder of the worker lease.

        Raises as `write_documents`.
        """
        prepared = [(encoded.document.id, prepared_revision(encoded)) for encoded in documents]
        with self._database.write() as connection:
            revisions = Revisions(connection, collection_key, now_us())
            for document_id, revision in prepared:
                revisions.replace(document_id, revision)
            revisions.count()


@dataclass(frozen=True, slots=True)
class Revision:
    """An EncodedDocument as the tables take it."""

    encoded: EncodedDocument
    metadata: str
    field_values: Sequence[FieldValue]
    size_bytes: int
    passage_vectors: Vectors
    document_vector: Vectors


@dataclass(frozen=True, slots=True)
class MetadataChange:
    json: str


def _last_changes(changes: Sequence[Change]) -> Mapping[str, Change]:
    """The change that decides for each id, in order of these.

    A MetadataUpdate may refer to the text of an EncodedDocument before it; then both become one.
    """
    encoded: dict[str, EncodedDocument] = {}
    last: dict[str, Change] = {}
    for change in changes:
        document_id = _id(change)
        if isinstance(change, EncodedDocument):
            encoded[document_id] = change
        last.pop(document_id, None)
        last[document_id] = _merged(encoded.get(document_id), change)
    return last


def _merged(before: EncodedDocument | None, change: Change) -> Change:
    if before is None or not isinstance(change, MetadataUpdate):
        return change
    if (before.document.text, before.document.title) != (change.document.text, change.document.title):
        return change
    return dataclasses.replace(before, document=change.document)


def _id(change: Change) -> str:
    match change:
        case EncodedDocument():
            return change.document.id
        case MetadataUpdate():
            return change.document_id
        case _:
            return change


def _prepared(change: Change) -> Revision | MetadataChange | None:
    match change:
        case EncodedDocument():
            return prepared_revision(change)
        case MetadataUpdate():
            return MetadataChange(metadata_to_json(change.document.metadata))
        case _:
            return None


def prepared_revision(encoded: EncodedDocument) -> Revision:
    document = encoded.document
    if not document.id:
        raise BadDocument("a document id must not be empty", where=("id",))
    to_utf8(document.id, what="id")
    to_utf8(document.title or "", what="title")
    vectors = np.vstack([encoded.document_vector[np.newaxis], *_rows(encoded)])  # (1 + p, d)
    stored = checked_vectors(vectors, what=f"document {document.id!r}")
    metadata = metadata_to_json(document.metadata)
    return Revision(
        encoded=encoded,
        metadata=metadata,
        field_values=field_values(json.loads(metadata)),
        size_bytes=len(to_utf8(document.text, what="text")),
        passage_vectors=stored[1:],
        document_vector=stored[0],
    )


def _rows(encoded: EncodedDocument) -> Sequence[Vectors]:
    n_vectors = len(encoded.passage_vectors)
    if n_vectors != len(encoded.passages):
        raise ValueError(f"{len(encoded.passages)} passages but {n_vectors} vectors")
    return [encoded.passage_vectors] if n_vectors else []


class Revisions:
    """Changes to one collection within one transaction; `count` writes the sums at the end."""

    def __init__(self, connection: sqlite3.Connection, collection_key: int, now: int) -> None:
        self._connection = connection
        self._collection_key = collection_key
        self._now = now
        self._metadata = MetadataIndex(connection, collection_key)
        self._document_key = _last_key(connection, "document")
        self._passage_key = _last_key(connection, "passage")
        (self._dimensions,) = connection.execute(
            "SELECT dimensions FROM collections WHERE key = ?", (collection_key,)
        ).fetchone()
        self._n_documents = self._n_passages = self._n_tokens = 0
        self._n_unknown_tokens = self._size_bytes = 0
        self._n_added = self._n_metadata_updates = 0

    def replace(self, document_id: str, revision: Revision) -> None:
        self._require_dimensions(document_id, revision.document_vector.size)
        before = self._remove(document_id)
        created_at = self._now if before is None else before["created_at"]
        self._document_key += 1
        self._insert_document(revision, created_at)
        self._metadata.add(self._document_key, revision.field_values)
        insert_text(self._connection, self._document_key, revision.encoded.document.text)
        self._insert_passages(revision)
        self._add(
            revision.encoded.n_tokens,
            revision.encoded.unknown_share,
            n_passages=len(revision.encoded.passages),
            size_bytes=revision.size_bytes,
            sign=1,
        )

    def update_metadata(self, document_id: str, metadata: MetadataChange) -> None:
        before = self._stored(document_id)
        if before is None:
            raise DocumentNotFound(f"there is no document {document_id!r} to give other metadata")
        self._connection.execute(
            "UPDATE documents SET metadata = ?, updated_at = ? WHERE key = ?",
            (metadata.json, self._now, before["key"]),
        )
        self._metadata.replace(before["key"], before=before["metadata"], after=metadata.json)
        self._n_metadata_updates += 1

    def delete(self, document_id: str) -> None:
        self._remove(document_id)

    def count(self) -> None:
        self._connection.executemany(
            "UPDATE last_keys SET key = ? WHERE noun = ?",
            [(self._document_key, "document"), (self._passage_key, "passage")],
        )
        self._connection.execute(
            "UPDATE collections SET n_documents = n_documents + ?, n_passages = n_passages + ?, "
            "n_tokens = n_tokens + ?, n_unknown_tokens = n_unknown_tokens + ?, "
            "size_bytes = size_bytes + ?, metadata_version = metadata_version + ?, dimensions = ? "
            "WHERE key = ?",
            (
                self._n_documents,
                self._n_passages,
                self._n_tokens,
                self._n_unknown_tokens,
                self._size_bytes,
                self._n_metadata_updates,
                self._dimensions,
                self._collection_key,
            ),
        )
        if self._n_added:
            self._connection.execute(
                "UPDATE collections SET max_document_key = ?, max_passage_key = ? WHERE key = ?",
                (self._document_key, self._passage_key, self._collection_key),
            )

    def _require_dimensions(self, document_id: str, dimensions: int) -> None:
        if self._dimensions is None:
            self._dimensions = dimensions
        elif self._dimensions != dimensions:
            raise BadVector(
                f"document {document_id!r} has vectors of {dimensions} dimensions, "
                f"the collection has {self._dimensions}"
            )

    def _remove(self, document_id: str) -> sqlite3.Row | None:
        row = self._stored(document_id)
        if row is None:
            return None
        self._metadata.remove(row["key"], field_values(from_json(row["metadata"])))
        self._connection.execute(
            "INSERT INTO tombstones (collection_key, document_key, first_passage_key, n_passages) "
            "SELECT ?, ?, coalesce(min(key), 0), coalesce(max(key) - min(key) + 1, 0) "
            "FROM passages WHERE document_key = ?",
            (self._collection_key, row["key"], row["key"]),
        )
        self._connection.execute("DELETE FROM documents WHERE key = ?", (row["key"],))
        self._add(
            row["n_tokens"],
            row["unknown_share"],
            n_passages=row["n_passages"],
            size_bytes=row["size_bytes"],
            sign=-1,
        )
        return row

    def _stored(self, document_id: str) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._connection.execute(
            "SELECT key, metadata, n_passages, n_tokens, unknown_share, size_bytes, created_at "
            "FROM documents WHERE collection_key = ? AND id = CAST(? AS TEXT)",
            (self._collection_key, document_id.encode(errors="surrogatepass")),
        ).fetchone()
        return row

    def _insert_document(self, revision: Revision, created_at: int) -> None:
        document = revision.encoded.document
        self._connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                self._document_key,
                self._collection_key,
                document.id,
                document.title,
                revision.metadata,
                json.dumps(document.page_starts),
                revision.encoded.content_hash,
                len(revision.encoded.passages),
                revision.encoded.n_tokens,
                revision.encoded.unknown_share,
                revision.size_bytes,
                created_at,
                self._now,
            ),
        )
        self._connection.execute(
            "INSERT INTO document_vectors VALUES (?, ?, ?)",
            (self._document_key, self._collection_key, revision.document_vector.data),
        )

    def _insert_passages(self, revision: Revision) -> None:
        first = self._passage_key + 1
        self._connection.executemany(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)",
            (
                (key, self._document_key, passage.start, passage.end, passage.n_tokens, passage.page)
                for key, passage in enumerate(revision.encoded.passages, first)
            ),
        )
        self._connection.executemany(
            "INSERT INTO passage_vectors VALUES (?, ?, ?, ?)",
            (
                (key, self._collection_key, self._document_key, vector.data)
                for key, vector in enumerate(revision.passage_vectors, first)
            ),
        )
        self._passage_key += len(revision.encoded.passages)

    def _add(
        self, n_tokens: int, unknown_share: float, *, n_passages: int, size_bytes: int, sign: int
    ) -> None:
        self._n_added += sign > 0
        self._n_documents += sign
        self._n_passages += sign * n_passages
        self._n_tokens += sign * n_tokens
        self._n_unknown_tokens += sign * round(unknown_share * n_tokens)
        self._size_bytes += sign * size_bytes


def _last_key(connection: sqlite3.Connection, noun: str) -> int:
    key: int = connection.execute("SELECT key FROM last_keys WHERE noun = ?", (noun,)).fetchone()[0]
    return key
