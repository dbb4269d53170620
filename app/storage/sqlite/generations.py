"""Published base files of derived indexes, and how long tombstones are kept for their readers."""

import sqlite3

from app.domain import View
from app.errors import CollectionNotFound
from app.storage.rows import Generation
from app.storage.sqlite.connection import Database

GENERATIONS_KEPT = 3
"""The current base, the one that running readers may still hold, and the one before as the mark.

A base misses what died while it was built, and its building began after the one before it was
published. So readers of the current base and of the one before need no tombstone recorded before
the third newest was published; those are pruned, in both views at the slower view's pace.
"""


class GenerationRows:
    _database: Database

    def generation(self, collection_key: int, view: View) -> Generation | None:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT g.* FROM generations g JOIN collections c ON c.key = g.collection_key "
                "WHERE g.collection_key = ? AND g.view = ? AND g.is_current AND c.dropped_at IS NULL",
                (collection_key, view),
            ).fetchone()
        if row is None:
            return None
        return Generation(
            collection_key=row["collection_key"],
            view=row["view"],
            number=row["number"],
            max_key=row["max_key"],
            n_vectors=row["n_vectors"],
            checksum=row["checksum"],
            details=row["details"],
        )

    def publish_generation(self, generation: Generation) -> None:
        with self._database.write() as connection:
            live = connection.execute(
                "SELECT 1 FROM collections WHERE key = ? AND dropped_at IS NULL",
                (generation.collection_key,),
            ).fetchone()
            if live is None:
                raise CollectionNotFound("the collection has been dropped; its base was not published")
            _make_current(connection, generation)
            _forget_old(connection, generation)
            _prune_tombstones(connection, generation.collection_key)

    def retract_generation(self, collection_key: int, view: View, number: int) -> None:
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM generations WHERE collection_key = ? AND view = ? AND number = ? AND is_current",
                (collection_key, view, number),
            )


def _make_current(connection: sqlite3.Connection, generation: Generation) -> None:
    connection.execute(
        "UPDATE generations SET is_current = 0 WHERE collection_key = ? AND view = ? AND is_current",
        (generation.collection_key, generation.view),
    )
    connection.execute(
        "INSERT INTO generations (collection_key, view, number, max_key, n_vectors, checksum, details, "
        "is_current, tombstone_sequence) "
        "SELECT ?, ?, ?, ?, ?, ?, ?, 1, seq FROM sqlite_sequence WHERE name = 'tombstones'",
        (
            generation.collection_key,
            generation.view,
            generation.number,
            generation.max_key,
            generation.n_vectors,
            generation.checksum,
            generation.details,
        ),
    )


def _forget_old(connection: sqlite3.Connection, generation: Generation) -> None:
    connection.execute(
        "DELETE FROM generations WHERE collection_key = :collection AND view = :view AND key NOT IN "
        "(SELECT key FROM generations WHERE collection_key = :collection AND view = :view "
        "ORDER BY key DESC LIMIT :kept)",
        {
            "collection": generation.collection_key,
            "view": generation.view,
            "kept": GENERATIONS_KEPT,
        },
    )


def _prune_tombstones(connection: sqlite3.Connection, collection_key: int) -> None:
    """Both views read the same tombstones: with fewer than three generations of either, all are kept."""
    marks = connection.execute(
        "SELECT min(tombstone_sequence) FROM generations WHERE collection_key = ? "
        "GROUP BY view HAVING count(*) = ?",
        (collection_key, GENERATIONS_KEPT),
    ).fetchall()
    if len(marks) < 2:
        return
    mark = min(sequence for (sequence,) in marks)
    connection.execute(
        "DELETE FROM tombstones WHERE collection_key = ? AND sequence <= ?", (collection_key, mark)
    )
    connection.execute("UPDATE collections SET tombstones_pruned = ? WHERE key = ?", (mark, collection_key))
