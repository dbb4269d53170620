"""From a collection to its standby: which documents differ, and writing copies of them."""

import sqlite3
from collections.abc import Sequence

from app.storage.rebuild_rows import Copy, Differing
from app.storage.sqlite.connection import Database
from app.storage.sqlite.jobs import require_leased
from app.storage.sqlite.times import now_us, to_us
from app.storage.sqlite.values import metadata_to_json
from app.storage.sqlite.writing import MetadataChange, Revision, Revisions, prepared_revision

# A text never changes under its key, so texts are the same where one document was copied from the other.
DIFFERING = (
    "FROM documents s LEFT JOIN documents t ON t.collection_key = :target AND t.id = s.id "
    "WHERE s.collection_key = :source AND s.id > CAST(:after AS TEXT) AND (t.key IS NULL "
    "OR (t.copied_from IS NOT s.key AND s.copied_from IS NOT t.key) "
    "OR t.metadata != s.metadata OR t.updated_at != s.updated_at)"
)
SURPLUS = (
    "FROM documents t WHERE t.collection_key = :target AND NOT EXISTS "
    "(SELECT 1 FROM documents s WHERE s.collection_key = :source AND s.id = t.id)"
)


class CopyRows:
    _database: Database

    def differing_documents(
        self, source_key: int, target_key: int, *, after: str | None = None, limit: int = 500
    ) -> Sequence[Differing]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT s.id, s.size_bytes, t.key IS NOT NULL AND (t.copied_from IS s.key "
                f"OR s.copied_from IS t.key) {DIFFERING} ORDER BY s.id LIMIT :limit",
                {"source": source_key, "target": target_key, "after": (after or "").encode(), "limit": limit},
            )
            return [Differing(id_, size_bytes, bool(is_same)) for id_, size_bytes, is_same in rows]

    def surplus_documents(self, source_key: int, target_key: int, *, limit: int = 500) -> Sequence[str]:
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT t.id {SURPLUS} ORDER BY t.id LIMIT :limit",
                {"source": source_key, "target": target_key, "limit": limit},
            )
            return [id_ for (id_,) in rows]

    def write_copies(
        self, target_key: int, changes: Sequence[Copy | str], *, job_id: str, worker: str
    ) -> None:
        # What can be refused or takes long is done before the file is locked for other writers.
        prepared = [(change, _prepared(change)) for change in changes]
        with self._database.write() as connection:
            job = require_leased(connection, job_id, worker)
            revisions = Revisions(connection, target_key, now_us())
            for change, written in prepared:
                if isinstance(change, str):
                    revisions.delete(change)
                    continue
                document_id = change.source.document.id
                if isinstance(written, Revision):
                    revisions.replace(document_id, written)
                elif isinstance(written, MetadataChange):
                    revisions.update_metadata(document_id, written)
                _keep_moments(connection, target_key, change)
            revisions.count()
            connection.execute(
                "UPDATE jobs SET n_done = min(n_inputs, n_done + ?), attempts = 0 WHERE key = ?",
                (len(changes), job["key"]),
            )


def count_differing(connection: sqlite3.Connection, source_key: int, target_key: int) -> int:
    keys = {"source": source_key, "target": target_key, "after": b""}
    (n_differing,) = connection.execute(f"SELECT count(*) {DIFFERING}", keys).fetchone()
    (n_surplus,) = connection.execute(f"SELECT count(*) {SURPLUS}", keys).fetchone()
    n_documents: int = n_differing + n_surplus
    return n_documents


def _prepared(change: Copy | str) -> Revision | MetadataChange | None:
    if isinstance(change, str):
        return None
    if change.encoded is not None:
        return prepared_revision(change.encoded)
    return MetadataChange(metadata_to_json(change.source.document.metadata))


def _keep_moments(connection: sqlite3.Connection, target_key: int, copy: Copy) -> None:
    source = copy.source
    connection.execute(
        "UPDATE documents SET created_at = ?, updated_at = ?, copied_from = iif(?, ?, copied_from) "
        "WHERE collection_key = ? AND id = CAST(? AS TEXT)",
        (
            to_us(source.created_at),
            to_us(source.updated_at),
            copy.encoded is not None,
            source.key,
            target_key,
            source.document.id.encode(),
        ),
    )
