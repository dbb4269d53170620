"""A worker inside a command, for when no worker process is running."""

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from app.settings import Settings
from indexer.cli.composition import Store, open_worker
from indexer.worker import Worker


class WorkerOnDemand:
    """Becomes the worker when no other holds the lease; only then is the model loaded."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._resources = ExitStack()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._resources.close()

    def check(self) -> None:
        """Start a worker if there is none anywhere.

        Raises:
            Exception: what ended the worker of this process.
        """
        if self._failure is not None:
            raise self._failure
        is_working = self._thread is not None and self._thread.is_alive()
        if not is_working and not self._store.rows.worker_alive():
            worker = self._resources.enter_context(open_worker(self._store, self._settings))
            self._thread = threading.Thread(target=self._run, args=[worker], name="worker")
            self._thread.start()

    def _run(self, worker: Worker) -> None:
        try:
            worker.run(self._stop)
        except BaseException as error:  # noqa: BLE001 - raised again by the command's own thread
            self._failure = error
