"""What SQLite reports, in the words of `app.errors`. The only place that knows its result codes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import (
    BifocalError,
    Overloaded,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageReadOnly,
)
from app.storage.free_space import is_disk_full

NOT_UTF8 = "Could not decode to UTF-8"
"""The sqlite3 module's own error, without a code, for a TEXT value that is damaged."""


@contextmanager
def decoded(path: Path) -> Iterator[None]:
    """Around what takes all its bytes from the store: those that are no UTF-8 are damage of the file.

    The sqlite3 module may fail so at SQLite's own message when the schema is damaged.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise StorageDamaged(f"{path} is damaged: {error}") from error


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise SQLite's operational errors as storage errors; errors in our own SQL pass through."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        storage_error = _storage_error(error, path)
        if storage_error is None:
            raise
        raise storage_error from error


def _storage_error(  # noqa: PLR0911 - a table
    error: sqlite3.DatabaseError, path: Path
) -> BifocalError | None:
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & 0xFF
    if code is None and str(error).startswith(NOT_UTF8):
        return StorageDamaged(f"{path} is damaged: {error}")
    if code == sqlite3.SQLITE_CANTOPEN:
        return _cannot_open(path)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_disk_full(path.parent)):
        return StorageFull(f"no space left for {path}; nothing was written")
    if code == sqlite3.SQLITE_READONLY:
        return StorageReadOnly(f"{path} cannot be written; nothing was changed")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StorageDamaged(f"{path} is damaged or is not a store of Bifocal: {error}")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_PERM):
        return StorageError(f"{path} cannot be read or written: {error}")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Overloaded(f"{path} is being written by others; try again")
    return None


def _cannot_open(path: Path) -> StorageError:
    if path.exists() and not path.is_file():
        return StorageError(f"{path} is not a file")
    if is_disk_full(path.parent):
        return StorageFull(f"no space left for {path}")
    return StorageReadOnly(f"{path} cannot be opened for writing: its folder must exist and be writable")
