"""The queue in front of SQLite's write lock, across the threads and processes of one machine."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from app.errors import Overloaded, StorageError
from app.storage.failed_writes import failed_writes

POLL_S = 0.001
"""Between looks at another process's lock. SQLite itself would sleep up to 0.1 s."""


class Writers:
    """Lets one writer at a time commit and checkpoint.

    SQLite would sort writers out by itself, but (1) its waiting polls with long sleeps, and (2) before
    3.51.3 a checkpoint beside a commit of another connection can, very rarely, lose that commit (the
    WAL-reset bug, sqlite.org/wal.html). Automatic checkpoints run inside COMMIT, so whoever holds this
    lock around a whole transaction excludes both. The kernel frees the lock of a process that dies.
    """

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._file: int | None = None
        self._is_closed = False

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Raises Overloaded after `timeout_s`."""
        deadline = time.monotonic() + self._timeout_s
        if not self._lock.acquire(timeout=self._timeout_s):
            raise _overloaded(self._path)
        try:
            if self._is_closed:
                raise StorageError(f"{self._path} has been closed")
            if self._file is None:
                self._file = _open(self._path)
            self._wait_for_processes(self._file, deadline)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Waits for a write in progress."""
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _wait_for_processes(self, file: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise _overloaded(self._path) from error
                time.sleep(POLL_S)
            else:
                return


def _open(path: Path) -> int:
    with failed_writes(f"{path} cannot be opened, nothing was written"):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _overloaded(path: Path) -> Overloaded:
    return Overloaded(f"other writers have held {path} for too long; try again")
