"""Keeps the leases of a working process alive from a thread of its own, while the model has the others."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import BifocalError
from app.storage.rows import Rows

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 4
"""Three may fail or come late before another worker takes over."""


class Heartbeat:
    """Renews the worker lease, and those of the jobs being watched."""

    def __init__(self, rows: Rows, worker: str, *, lease_s: float) -> None:
        self._rows = rows
        self._worker = worker
        self._lease_s = lease_s
        self._end = threading.Event()
        self._worker_lost = threading.Event()
        self._watched: dict[str, threading.Event] = {}
        """By job: set when its lease was lost."""
        self._lock = threading.Lock()

    @property
    def is_lost(self) -> bool:
        """Whether another worker took over: stop everything."""
        return self._worker_lost.is_set()

    @contextmanager
    def beating(self) -> Iterator[None]:
        thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    @contextmanager
    def watching(self, job_id: str) -> Iterator[Callable[[], bool]]:
        """Renew this job's lease too; gives a function that says whether it was lost."""
        lost = threading.Event()
        with self._lock:
            self._watched[job_id] = lost
        try:
            yield lambda: lost.is_set() or self._worker_lost.is_set()
        finally:
            with self._lock:
                del self._watched[job_id]

    def _beat(self) -> None:
        while not self._end.wait(self._lease_s / BEATS_PER_LEASE):
            try:
                self._renew()
            except (
                BifocalError
            ) as error:  # full, read-only, or held by others for long: the next beat may pass
                logger.warning("cannot renew the worker's lease: %s", error)

    def _renew(self) -> None:
        if not self._rows.worker_heartbeat(self._worker, lease_s=self._lease_s):
            logger.error("another worker took over; this one was silent for too long")
            self._worker_lost.set()
        with self._lock:
            for job_id, lost in self._watched.items():
                if not self._rows.renew_lease(job_id, self._worker, lease_s=self._lease_s):
                    lost.set()
