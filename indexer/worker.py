"""The one process that changes documents: claims jobs, oldest first, and works them off one at a time."""

import errno
import logging
import os
import platform
import threading
import time
import uuid

from app.domain import Collection, JobState
from app.errors import (
    BifocalError,
    Conflict,
    FingerprintMismatch,
    ModelUnavailable,
    NotFound,
    Overloaded,
    StorageDamaged,
    StorageError,
)
from app.settings import Settings
from app.storage.index import Index
from app.storage.rows import ClaimedJob, Rows
from indexer.encoding import Stopped
from indexer.heartbeat import Heartbeat
from indexer.ingestion import Ingestion
from indexer.maintenance import Maintenance

logger = logging.getLogger(__name__)

POLL_S = 0.01
"""How late a new job may be noticed. Looking costs microseconds."""
CLAIM_EVERY_S = 1.0
"""A lease that runs out is no commit, so it is looked for at this interval."""
BACK_OFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits after failures of the machine (full disk, busy file), which are not the job's fault."""
MACHINE_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)


class Worker:
    """Holds the worker lease while it runs; a second worker stands by until the first is gone."""

    def __init__(self, rows: Rows, index: Index, ingestion: Ingestion, *, settings: Settings) -> None:
        self._rows = rows
        self._index = index
        self._ingestion = ingestion
        self._lease_s = settings.lease_s
        self._n_failures = 0
        self.name = f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def run(self, stop: threading.Event) -> bool:
        """Work until `stop` is set, then give back what is unfinished.

        Stopping takes at most one call of the model; the job goes on later from its last stored outcome.
        False: this worker was silent for so long that another took over, and must let go of the index.
        """
        if not self._take_lease(stop):
            return True
        heartbeat = Heartbeat(self._rows, self.name, lease_s=self._lease_s)
        maintenance = Maintenance(self._rows, self._index)
        try:
            with heartbeat.beating(), maintenance.running():
                self._work(stop, heartbeat)
        finally:
            self._rows.worker_release(self.name)
            logger.info("worker stopped worker=%s", self.name)
        return not heartbeat.is_lost

    def _take_lease(self, stop: threading.Event) -> bool:
        """Wait until no other worker lives. False: stopped before that."""
        is_standing_by = False
        while not stop.is_set():
            if self._rows.worker_heartbeat(self.name, lease_s=self._lease_s):
                logger.info("worker started worker=%s", self.name)
                return True
            if not is_standing_by:
                logger.info("another worker is running; standing by to take over when it stops")
                is_standing_by = True
            stop.wait(min(1.0, self._lease_s / 3))
        return False

    def _work(self, stop: threading.Event, heartbeat: Heartbeat) -> None:
        """Until stopped, or until the lease is lost to another worker."""
        while not stop.is_set() and not heartbeat.is_lost:
            try:
                version = self._rows.data_version()
                claimed = self._rows.claim_job(self.name, lease_s=self._lease_s)
                if claimed is None:
                    self._wait_for_commit(version, stop, heartbeat)
                    continue
                self._work_off(claimed, stop, heartbeat)
            except (BifocalError, OSError) as error:
                if not _is_of_machine(error):
                    raise
                self._back_off(stop, error)
            else:
                self._n_failures = 0

    def _wait_for_commit(self, version: int, stop: threading.Event, heartbeat: Heartbeat) -> None:
        until = time.monotonic() + CLAIM_EVERY_S
        while time.monotonic() < until and not heartbeat.is_lost and self._rows.data_version() == version:
            if stop.wait(POLL_S):
                return

    def _work_off(self, claimed: ClaimedJob, stop: threading.Event, heartbeat: Heartbeat) -> None:
        """Bring the job to its end, or give it back and raise when the machine is at fault."""
        job = claimed.job
        began = time.monotonic()
        logger.info(
            "job started job=%s kind=%s collection=%s from_input=%d n_inputs=%d attempt=%d",
            *(job.id, job.kind, job.collection, claimed.n_done, job.n_inputs, claimed.attempts),
        )
        try:
            with heartbeat.watching(job.id) as is_lost:
                self._ingestion.process(
                    claimed, worker=self.name, should_stop=lambda: stop.is_set() or is_lost()
                )
        except Stopped:
            self._rows.release_job(job.id, self.name)
            logger.info("job given back unfinished job=%s", job.id)
        except FingerprintMismatch as error:
            self._fail(claimed, str(error))
        except (Conflict, NotFound) as error:
            logger.info("job left job=%s: %s", job.id, error)
            if not heartbeat.is_lost:
                self._show_what_is_stored(claimed.collection)
        except Exception as error:  # whatever one job does, the next one must get its turn
            if _is_of_machine(error):
                self._rows.release_job(job.id, self.name)
                raise
            logger.exception("unexpected failure job=%s", job.id)
            self._fail(claimed, _public_message(error))
        else:
            logger.info("job done job=%s seconds=%.3f", job.id, time.monotonic() - began)

    def _show_what_is_stored(self, collection: Collection) -> None:
        """Of a job that was cancelled: what it stored stays."""
        try:
            self._index.apply(collection)
        except NotFound:
            logger.debug("collection is gone collection=%s", collection.name)

    def _fail(self, claimed: ClaimedJob, message: str) -> None:
        logger.error("job failed job=%s: %s", claimed.job.id, message)
        try:
            self._rows.finish_job(claimed.job.id, self.name, JobState.FAILED, error=message)
        except (Conflict, NotFound) as error:
            logger.info("job left job=%s: %s", claimed.job.id, error)

    def _back_off(self, stop: threading.Event, error: Exception) -> None:
        wait_s = BACK_OFF_S[min(self._n_failures, len(BACK_OFF_S) - 1)]
        self._n_failures += 1
        logger.error("%s; no job is lost, trying again in %g s", error, wait_s)
        stop.wait(wait_s)


def _is_of_machine(error: Exception) -> bool:
    """Whether the same job may succeed later, once the machine is well again."""
    if isinstance(error, OSError):
        return error.errno in MACHINE_ERRNOS
    return isinstance(error, StorageError | Overloaded | ModelUnavailable) and not isinstance(
        error, StorageDamaged
    )


def _public_message(error: Exception) -> str:
    """For the caller: our own errors speak for themselves, others are named but kept in the log."""
    if isinstance(error, BifocalError):
        return str(error)
    return f"unexpected failure in the worker ({type(error).__name__}); its log says more"
