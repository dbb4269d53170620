"""Putting right what can be made from the rest of the rows. By the holder of the worker lease."""

import sqlite3

from app.storage.sqlite.connection import Database
from app.storage.sqlite.counting import RECOUNT
from app.storage.sqlite.metadata import fill_index
from app.storage.sqlite.times import now_us

ORPHANS = (
    # Derived indexes follow tombstones. The document may live, so its key is not in them.
    """
    INSERT INTO tombstones (collection_key, document_key, first_passage_key, n_passages)
    SELECT v.collection_key, 0, v.key, 1 FROM passage_vectors v JOIN collections c ON c.key = v.collection_key
    WHERE NOT EXISTS (
        SELECT 1 FROM passages p JOIN documents d ON d.key = p.document_key WHERE p.key = v.key)
    """,
    """
    INSERT INTO tombstones (collection_key, document_key, first_passage_key, n_passages)
    SELECT v.collection_key, v.key, 0, 0
    FROM document_vectors v JOIN collections c ON c.key = v.collection_key
    WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = v.key)
    """,
    "DELETE FROM passages WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = document_key)",
    "DELETE FROM passage_vectors WHERE NOT EXISTS (SELECT 1 FROM passages WHERE key = passage_vectors.key)",
    "DELETE FROM document_vectors "
    "WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = document_vectors.key)",
    "DELETE FROM metadata_values WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = document_key)",
)


class MendingRows:
    _database: Database

    def delete_orphans(self) -> None:
        """Passages, vectors and indexed metadata of no document."""
        with self._database.write() as connection:
            _execute(connection, ORPHANS)

    def index_metadata(self, collection_key: int) -> None:
        """Anew; who has kept what a filter found looks again."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM metadata_values WHERE field_key IN "
                "(SELECT key FROM metadata_fields WHERE collection_key = ?)",
                (collection_key,),
            )
            fill_index(connection, [collection_key])
            connection.execute(
                "UPDATE collections SET metadata_version = metadata_version + 1 WHERE key = ?",
                (collection_key,),
            )

    def recount(self) -> None:
        """What collections say that they have, and which keys were used last."""
        with self._database.write() as connection:
            _execute(connection, RECOUNT)

    def release_silent_jobs(self) -> None:
        """Those whose lease ran out go back to the queue."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'queued', worker = NULL, leased_until = NULL "
                "WHERE state = 'running' AND leased_until < ?",
                (now_us(),),
            )


def _execute(connection: sqlite3.Connection, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)
