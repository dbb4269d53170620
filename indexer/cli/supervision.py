"""Keeps child processes running: restarts with growing waits, an orderly end for all, and no orphans."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.engine.watchdog import STUCK_EXIT_CODE

WAITS_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Before a child that ended is started again."""
SETTLED_S = 60.0
"""A child that lived this long is well; its next end is counted anew."""
MAX_QUICK_ENDS = len(WAITS_S)
STOP_WAIT_S = 30.0
"""For an orderly end; the worker needs a call of the model at most."""
POLL_S = 0.1
PR_SET_PDEATHSIG = 1
"""Linux, prctl(2): the signal that a process gets when its parent dies."""

Say = Callable[[str], None]


@dataclass
class Child:
    """One process, started again when it ends."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    n_quick_ends: int = 0

    def watch(self, say: Say) -> None:
        """Report an end; start when it is time."""
        if self.process is None:
            if time.monotonic() >= self.start_again_at and not self.is_hopeless:
                self._start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.process = None
        is_quick = time.monotonic() - self.started_at < SETTLED_S
        self.n_quick_ends = self.n_quick_ends + 1 if is_quick else 1
        wait_s = WAITS_S[self.n_quick_ends - 1]
        self.start_again_at = time.monotonic() + wait_s
        consequence = "giving up" if self.is_hopeless else f"starting it again in {wait_s:g} s"
        say(f"The {self.name} ended {_how(code)}; {consequence}.")

    @property
    def is_hopeless(self) -> bool:
        """It ends again and again right after its start."""
        return self.n_quick_ends >= MAX_QUICK_ENDS

    def ask_to_stop(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def wait_or_kill(self, *, until: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self) -> None:
        self.started_at = time.monotonic()
        # In a session of its own: a Ctrl-C reaches the supervisor alone, which then stops all in order.
        self.process = subprocess.Popen(self.command, start_new_session=True)  # noqa: S603 - our own


def supervise(
    children: Sequence[Child], *, stop: threading.Event, say: Say, is_ready: Callable[[], bool], ready: str
) -> bool:
    """Keep all running until `stop` is set, then end them; says `ready` once `is_ready`.

    False: one of them cannot be kept running.
    """
    is_announced = False
    try:
        while not stop.wait(POLL_S):
            for child in children:
                child.watch(say)
            if any(child.is_hopeless for child in children):
                return False
            if not is_announced and is_ready():
                say(ready)
                is_announced = True
    finally:
        _end(children)
    return True


def _end(children: Sequence[Child]) -> None:
    for child in children:
        child.ask_to_stop()
    until = time.monotonic() + STOP_WAIT_S
    for child in children:
        child.wait_or_kill(until=until)


def _how(code: int) -> str:
    if code < 0:
        return f"by {signal.Signals(-code).name}"
    reason = " (a call of the model did not return)" if code == STUCK_EXIT_CODE else ""
    return f"with exit code {code}{reason}"


def die_with_parent() -> None:
    """Ask for SIGTERM when the process that started this one dies, however it dies. Linux only."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before the request
            raise SystemExit(0)
