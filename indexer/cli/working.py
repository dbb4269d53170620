"""`bifocal worker`: the process that works off jobs."""

import logging.config
import signal
import threading

from app.logs import log_config
from app.settings import Settings
from indexer.cli.composition import open_store, open_worker
from indexer.cli.failures import fail
from indexer.cli.supervision import die_with_parent


def work(*, is_child: bool) -> None:
    """Until SIGTERM or SIGINT, which end it in order: what is unfinished can go on at once elsewhere."""
    if is_child:
        die_with_parent()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings.from_environment()
    logging.config.dictConfig(log_config(settings))
    with open_store(settings) as store, open_worker(store, settings) as worker:
        if not worker.run(stop):
            fail("this worker was silent for so long that another one took over")
