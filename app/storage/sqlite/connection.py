"""Connections to one SQLite file, transactions, and the counter that tells readers to look again."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock

from app.errors import StorageError, StorageReadOnly
from app.storage.sqlite.failures import decoded, translated
from app.storage.sqlite.writers import Writers

BUSY_TIMEOUT_S = 30.0
"""How long a write waits for those of other processes; theirs take well under a second."""

CACHE_KIB = 8_192
"""Per connection. Small: any foreign commit empties it, the pages stay in the system's cache."""

WAL_LIMIT_BYTES = 64 * 2**20
"""The log is cut back to this after a large transaction."""


class Database:
    """An SQLite file in WAL mode.

    A connection belongs to one call at a time and is kept for the next one: threads of a server come
    and go, connections stay warm. An acknowledged write is on disk (synchronous=FULL).
    """

    def __init__(self, path: Path, *, max_size_bytes: int | None = None) -> None:
        self.path = path
        self._max_size_bytes = max_size_bytes
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()
        self._is_closed = False
        self._writers = Writers(path.with_name(path.name + "-writers"), timeout_s=BUSY_TIMEOUT_S)
        _make_folder(path.parent)
        with translated(path), decoded(path):
            self._watcher = self._open()
            try:
                _enter_wal_mode(self._watcher)
            except BaseException:
                self._watcher.close()
                raise
        self._watcher_lock = Lock()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One snapshot: everything read inside belongs to the same moment."""
        with translated(self.path), decoded(self.path), self._borrowed() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: durable on leaving, undone on any exception."""
        with (
            translated(self.path),
            decoded(self.path),
            self.exclusively(),
            self._borrowed() as connection,
            transaction(connection),
        ):
            yield connection

    def exclusively(self) -> AbstractContextManager[None]:
        """To be held around every transaction that writes."""
        return self._writers.exclusively()

    @contextmanager
    def scratch(self) -> Iterator[sqlite3.Connection]:
        """A connection outside any transaction, for temporary tables."""
        with translated(self.path), self._borrowed() as connection:
            yield connection

    def data_version(self) -> int:
        """A number that changes with every commit of any connection. Only comparable within this object.

        `PRAGMA data_version` counts the commits of other connections as one connection sees them. So one
        connection that never writes is asked for all threads: to it every commit is another's.
        """
        with translated(self.path), self._watcher_lock:
            if self._is_closed:
                raise StorageError(f"{self.path} has been closed")
            version: int = self._watcher.execute("PRAGMA data_version").fetchone()[0]
            return version

    def close(self) -> None:
        """Close what is idle now and what is in use when it comes back."""
        with self._lock, self._watcher_lock:
            self._is_closed = True
            connections = [*self._idle, self._watcher]
            self._idle.clear()
        for connection in connections:
            connection.close()
        self._writers.close()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._is_closed:
                raise StorageError(f"{self.path} has been closed")
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._open()
        try:
            yield connection
        finally:
            with self._lock:
                is_kept = not self._is_closed
                if is_kept:
                    self._idle.append(connection)
            if not is_kept:
                connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        if self._max_size_bytes is not None:
            page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {self._max_size_bytes // page_size}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take the file's write lock, then commit, or roll back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors roll back by themselves
            connection.execute("ROLLBACK")
        raise


def n_free_pages(connection: sqlite3.Connection) -> int:
    n_pages: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return n_pages


def return_free_pages(connection: sqlite3.Connection, n_pages: int) -> None:
    """Shrink the file by that many unused pages. One at a time: `execute` steps this pragma only once."""
    for _ in range(n_pages):
        connection.execute("PRAGMA incremental_vacuum(1)")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StorageError(f"{folder} is not a folder") from error
    except OSError as error:
        raise StorageReadOnly(f"the folder {folder} cannot be made: {error.strerror}") from error


def _enter_wal_mode(connection: sqlite3.Connection) -> None:
    """Persistent in the file, as is the vacuum mode. SQLite does not wait for others here, so this does.

    auto_vacuum counts only for a file that is still empty; `return_free_pages` needs it.
    """
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        return
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise StorageError(f"the file system does not allow a store: journal mode is {mode}, not wal")
        return
