"""`bifocal worker`: the process that works off jobs."""

import logging
import signal
import sys
import threading

from app.settings import Settings
from indexer.cli.composition import open_store, open_worker
from indexer.cli.supervision import die_with_parent

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def work(*, is_child: bool) -> None:
    """Until SIGTERM or SIGINT, which end it in order: what is unfinished can go on at once elsewhere."""
    if is_child:
        die_with_parent()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings.from_environment()
    logging.basicConfig(level=settings.log_level.upper(), format=LOG_FORMAT, stream=sys.stderr)
    with open_store(settings) as store, open_worker(store, settings) as worker:
        worker.run(stop)
