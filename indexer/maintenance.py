"""What keeps the store small and fast, done beside the jobs so that no write waits for it."""

import datetime as dt
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from app.domain import Collection
from app.errors import BifocalError
from app.storage.index import Index
from app.storage.rows import Rows

logger = logging.getLogger(__name__)

ROUND_S = 1.0
PURGED_PER_ROUND = 2_000
"""Documents of dropped collections; few, because jobs cannot write meanwhile."""
STOP_WAIT_S = 20.0
JOBS_KEPT = dt.timedelta(days=7)
"""With the outcomes of each input, after their end."""
FORGET_JOBS_EVERY_S = 60.0
"""Looking for old ones reads the row of every job, and jobs cannot be written meanwhile."""


class _Interrupted(Exception):
    pass


class Maintenance:
    """Rebuilds bases where worthwhile and removes what is left of dropped collections, in a thread."""

    def __init__(self, rows: Rows, index: Index) -> None:
        self._rows = rows
        self._index = index
        self._end = threading.Event()
        self._seen_version: int | None = None
        self._forget_jobs_at = 0.0
        self._has_swept = False

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, name="maintenance", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join(STOP_WAIT_S)

    def _run(self) -> None:
        while not self._end.wait(ROUND_S):
            try:
                self.round()
            except _Interrupted:
                return
            except BifocalError as error:
                logger.warning("maintenance put off: %s", error)
            except Exception:  # a fault here must not end what serves writes
                logger.exception("maintenance failed")

    def round(self) -> None:
        """Do what is due now."""
        for key in self._rows.purge_dropped(limit=PURGED_PER_ROUND):
            self._index.drop(key)
            logger.info("dropped collection removed collection_key=%d", key)
        self._sweep()
        self._forget_old_jobs()
        version = self._rows.data_version()
        if version == self._seen_version:
            return
        for collection in self._rows.collections():
            self._maintain(collection)
        self._seen_version = version

    def _sweep(self) -> None:
        """Once: a process before this one may have died between the two steps of a removal."""
        if self._has_swept:
            return
        for key in self._index.sweep():
            logger.info("files of a dropped collection removed collection_key=%d", key)
        self._has_swept = True

    def _forget_old_jobs(self) -> None:
        if time.monotonic() < self._forget_jobs_at:
            return
        self._forget_jobs_at = time.monotonic() + FORGET_JOBS_EVERY_S
        before = dt.datetime.now(dt.UTC) - JOBS_KEPT
        while not self._end.is_set() and self._rows.prune_jobs(finished_before=before):
            pass

    def _maintain(self, collection: Collection) -> None:
        try:
            if self._index.maintain(collection, progress=self._continue_or_interrupt):
                logger.info("new base published collection=%s", collection.name)
        except BifocalError as error:
            logger.warning("maintenance put off collection=%s: %s", collection.name, error)

    def _continue_or_interrupt(self, stage: str, share: float) -> None:
        if self._end.is_set():
            raise _Interrupted
        logger.debug("%s: %.0f %%", stage, 100 * share)
