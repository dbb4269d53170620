"""A copy of the rows as they are at one moment, taken while others read and write."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from app.storage.sqlite.failures import translated

COUNTED = ("collections", "documents", "passages", "passage_vectors", "classifiers", "api_keys", "jobs")
NOT_DROPPED = " WHERE dropped_at IS NULL"


def copy_rows(source: Path, target: Path) -> None:
    """Everything that was committed before the call; of a write meanwhile all or nothing.

    In one step: with several, SQLite would begin anew after every foreign commit. Writers do not wait for it,
    only their log cannot shrink meanwhile. Leases are left out, so that the copy can be worked on at once.

    Raises StorageDamaged, StorageFull, StorageError.
    """
    with (
        translated(source),
        closing(sqlite3.connect(f"file:{quote(str(source.absolute()))}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        copy.execute("PRAGMA synchronous = OFF")  # a copy that a power cut ends is made again
        original.backup(copy)
        copy.execute("DELETE FROM leases")
        copy.execute(
            "UPDATE jobs SET state = 'queued', worker = NULL, leased_until = NULL WHERE state = 'running'"
        )
        # One file without a log beside it; whoever opens it as a store turns the log on again.
        copy.execute("PRAGMA journal_mode = DELETE")


def count_rows(path: Path) -> Mapping[str, int]:
    """By table, of those that nobody wants to miss."""
    with translated(path), closing(sqlite3.connect(path)) as connection:
        return {
            table: connection.execute(
                f"SELECT count(*) FROM {table}{NOT_DROPPED if table == 'collections' else ''}"  # noqa: S608
            ).fetchone()[0]
            for table in COUNTED
        }


def is_used(path: Path) -> bool:
    """Whether another process has the rows open: the last one that closes them takes the log away."""
    with translated(path), closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return path.with_name(path.name + "-wal").exists()
