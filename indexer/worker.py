"""The one process that changes documents, one job after the other; beside them it evaluates searches and
re-indexes collections."""

import logging
import os
import platform
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from app.domain import WRITES, Collection, JobKind
from app.errors import NotFound
from app.settings import Settings
from app.storage.index import Index
from app.storage.rows import Rows
from indexer.heartbeat import Heartbeat
from indexer.ingestion import Ingestion
from indexer.job_loop import JobLoop, Process
from indexer.maintenance import Maintenance

logger = logging.getLogger(__name__)


class Worker:
    """Holds the worker lease while it runs; a second worker stands by until the first is gone."""

    def __init__(
        self,
        rows: Rows,
        index: Index,
        ingestion: Ingestion,
        *,
        settings: Settings,
        evaluate: Process | None = None,
        rebuild: Process | None = None,
    ) -> None:
        """Without `evaluate` or `rebuild`, such jobs wait for a worker that has it."""
        self._rows = rows
        self._index = index
        self._ingestion = ingestion
        self._beside = {JobKind.EVALUATION: evaluate, JobKind.REINDEX: rebuild}
        self._lease_s = settings.lease_s
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
            with heartbeat.beating(), maintenance.running(), self._working_beside(heartbeat):
                writes = JobLoop(
                    self._rows,
                    self._ingestion.process,
                    worker=self.name,
                    kinds=WRITES,
                    lease_s=self._lease_s,
                    when_lost=self._show_what_is_stored,
                )
                writes.run(stop, heartbeat)
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

    @contextmanager
    def _working_beside(self, heartbeat: Heartbeat) -> Iterator[None]:
        """In threads beside the writes, which never wait for jobs that take minutes."""
        end = threading.Event()
        threads = [
            threading.Thread(
                target=self._run_beside, args=(kind, process, end, heartbeat), name=f"{kind} jobs"
            )
            for kind, process in self._beside.items()
            if process is not None
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            end.set()
            for thread in threads:
                thread.join()

    def _run_beside(
        self, kind: JobKind, process: Process, end: threading.Event, heartbeat: Heartbeat
    ) -> None:
        loop = JobLoop(self._rows, process, worker=self.name, kinds=[kind], lease_s=self._lease_s)
        try:
            loop.run(end, heartbeat)
        except Exception:  # a fault here must not end what serves writes
            logger.exception("jobs of the kind %s wait until the worker is started again", kind)

    def _show_what_is_stored(self, collection: Collection) -> None:
        """Of a job that was cancelled: what it stored stays."""
        try:
            self._index.apply(collection)
        except NotFound:
            logger.debug("collection is gone collection=%s", collection.name)
