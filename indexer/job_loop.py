"""Claims jobs of some kinds, oldest first, and works them off one at a time."""

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from app.domain import Collection, JobKind, JobState
from app.errors import (
    BifocalError,
    Conflict,
    FingerprintMismatch,
    InvalidInput,
    ModelUnavailable,
    NotFound,
    Overloaded,
    StorageDamaged,
    StorageError,
)
from app.storage.rows import ClaimedJob, Rows
from indexer.encoding import Stopped
from indexer.heartbeat import Heartbeat

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


class Process(Protocol):
    def __call__(self, claimed: ClaimedJob, *, worker: str, should_stop: Callable[[], bool]) -> None:
        """Do the rest of the job and make it final.

        Raises:
            Stopped: `should_stop` said so; the job is unfinished.
            Conflict: the job was cancelled or taken over.
            FingerprintMismatch: the collection was made by another model.
        """


class JobLoop:
    """Until stopped, or until the worker's lease is lost to another one.

    Args:
        when_lost: called with the collection of a job that was cancelled.
    """

    def __init__(
        self,
        rows: Rows,
        process: Process,
        *,
        worker: str,
        kinds: Iterable[JobKind],
        lease_s: float,
        when_lost: Callable[[Collection], None] = lambda _: None,
    ) -> None:
        self._rows = rows
        self._process = process
        self._worker = worker
        self._kinds = tuple(kinds)
        self._lease_s = lease_s
        self._when_lost = when_lost
        self._n_failures = 0

    def run(self, stop: threading.Event, heartbeat: Heartbeat) -> None:
        while not stop.is_set() and not heartbeat.is_lost:
            try:
                version = self._rows.data_version()
                claimed = self._rows.claim_job(self._worker, lease_s=self._lease_s, kinds=self._kinds)
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
                self._process(claimed, worker=self._worker, should_stop=lambda: stop.is_set() or is_lost())
        except Stopped:
            self._rows.release_job(job.id, self._worker)
            logger.info("job given back unfinished job=%s", job.id)
        except (FingerprintMismatch, InvalidInput) as error:
            self._fail(claimed, str(error))
        except (Conflict, NotFound) as error:
            logger.info("job left job=%s: %s", job.id, error)
            if not heartbeat.is_lost:
                self._when_lost(claimed.collection)
        except Exception as error:  # whatever one job does, the next one must get its turn
            if _is_of_machine(error):
                self._rows.release_job(job.id, self._worker)
                raise
            logger.exception("unexpected failure job=%s", job.id)
            self._fail(claimed, _public_message(error))
        else:
            logger.info("job done job=%s seconds=%.3f", job.id, time.monotonic() - began)

    def _fail(self, claimed: ClaimedJob, message: str) -> None:
        logger.error("job failed job=%s: %s", claimed.job.id, message)
        try:
            self._rows.finish_job(claimed.job.id, self._worker, JobState.FAILED, error=message)
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
