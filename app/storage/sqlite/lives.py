"""Proof that a worker is dead: a lock that it held for life, and that the kernel took from it."""

import fcntl
import os
from pathlib import Path
from threading import Lock

MAX_NAME_BYTES = 1_000


class Life:
    """A lock file with the name of its last holder in it. Safe to call from any thread.

    Whoever gets the lock knows that the worker named in the file is gone: only that worker ever wrote its
    name, while it held the lock, and it never lets go before it stops working. A worker that could not get
    the lock, as on a file system without locks, has its name nowhere, and nothing is said of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._file: int | None = None
        self._worker: str | None = None
        """Under whose name this object holds the lock."""

    def dead_before(self, worker: str) -> str | None:
        """The worker that held the lock before, which is dead; None where that is not certain.

        The lock is held afterwards if it could be had; then `begin` or `forgo` must follow.
        """
        with self._lock:
            if self._worker is not None or not self._acquired():
                return None
            assert self._file is not None
            name = os.pread(self._file, MAX_NAME_BYTES, 0).decode("utf-8", "replace")
            return name if name not in ("", worker) else None

    def begin(self, worker: str) -> None:
        """Live under this name from now on, if the lock could be had."""
        with self._lock:
            if self._file is None or self._worker is not None:
                return
            try:
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, worker.encode(), 0)
            except OSError:  # a full disk: without a name in the file nobody is declared dead
                self._release()
            else:
                self._worker = worker

    def forgo(self) -> None:
        """Give the lock back, unless a worker lives under it."""
        with self._lock:
            if self._worker is None:
                self._release()

    def end(self, worker: str) -> None:
        """Give the lock back if this worker lives under it: it works no more."""
        with self._lock:
            if self._worker == worker:
                self._release()

    def close(self) -> None:
        with self._lock:
            self._release()

    def _acquired(self) -> bool:
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def _release(self) -> None:
        self._worker = None
        if self._file is not None:
            os.close(self._file)
            self._file = None
