"""Notices a call of a model that never returns, and ends the process, so that it is started again.

Waiting longer would not help: native code that stands still cannot be interrupted, and its thread and the
model's memory are lost until the process ends. Whoever keeps the process running (`bifocal up`, the restart
policy of a container) starts it again, and a job goes on behind its last stored outcome.

Two watches, because there are two ways to stand still:

- One thread waits in native code and the others run. Then the watch's own thread sees the same call tick
  after tick. Ticks are counted, not seconds: a suspended process has not been slow.
- A thread waits in native code and keeps Python's lock (GIL). Then no thread of Python runs any more, this
  watch neither. So each tick winds up the timer of faulthandler, which needs no Python. When nobody winds it
  up any more, it writes all stacks and ends the process, with exit code 1, for it knows no other.
"""

import faulthandler
import itertools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

STUCK_EXIT_CODE = 75
"""EX_TEMPFAIL of sysexits.h: try again."""
TICKS = 10
"""Per limit."""
SPARE_S = 10.0
"""From the limit until the timer ends a process whose watch runs no more."""


class Watchdog:
    """Watches the calls of one model. Safe to use from any thread.

    Args:
        limit_s: that one call may take.
        on_stuck: called once, from the watch's own thread, when one has taken longer.
    """

    def __init__(self, *, limit_s: float, on_stuck: Callable[[], None]) -> None:
        self._limit_s = limit_s
        self._on_stuck = on_stuck
        self._numbers = itertools.count()
        self._running: dict[int, int] = {}
        """Number of the call that each thread is in."""
        self._end = threading.Event()
        self._wind_up()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around one call of the model. Costs microseconds."""
        thread = threading.get_ident()
        self._running[thread] = next(self._numbers)
        try:
            yield
        finally:
            del self._running[thread]

    def close(self) -> None:
        """Watch no longer. Other watches of the process wind the timer up again at their next tick."""
        self._end.set()
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        ticks_of: dict[int, int] = {}
        while not self._end.wait(self._limit_s / TICKS):
            self._wind_up()
            ticks_of = {number: ticks_of.get(number, 0) + 1 for number in self._running.copy().values()}
            if any(n_ticks > TICKS for n_ticks in ticks_of.values()):
                self._on_stuck()
                return

    def _wind_up(self) -> None:
        if sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(self._limit_s + SPARE_S, exit=True, file=sys.__stderr__)


def end_process(fault: str) -> None:
    """Log the stacks of all threads and end at once: an orderly end would wait for what stands still."""
    logger.critical("%s; ending with exit code %d, to be started again", fault, STUCK_EXIT_CODE)
    logging.shutdown()
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
    os._exit(STUCK_EXIT_CODE)
