import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.engine.watchdog import STUCK_EXIT_CODE
from indexer.cli import supervision
from indexer.cli.supervision import Child, supervise
from tests.indexer.stand_ins import wait_until

ROOT = Path(__file__).parents[2]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


SLEEPS = python("import time; time.sleep(600)")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


class Supervised:
    """`supervise` in a thread, and what it said."""

    def __init__(self, *children: Child, is_ready: bool = True) -> None:
        self.children = children
        self.said: list[str] = []
        self.result: bool | None = None
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[is_ready])

    def _run(self, is_ready: bool) -> None:
        self.result = supervise(
            self.children, stop=self.stop, say=self.said.append, is_ready=lambda: is_ready, ready="ready"
        )

    @contextmanager
    def running(self) -> Iterator["Supervised"]:
        self._thread.start()
        try:
            yield self
        finally:
            self.stop.set()
            self._thread.join()


def pid(child: Child) -> int:
    return child.process.pid if child.process else 0


def test_both_run_until_stopped_and_none_is_left() -> None:
    with Supervised(Child("a", SLEEPS), Child("b", SLEEPS)).running() as supervised:
        wait_until(lambda: all(pid(child) for child in supervised.children))
        pids = [pid(child) for child in supervised.children]
        wait_until(lambda: supervised.said == ["ready"])
    assert supervised.result is True
    assert not any(is_running(each) for each in pids)


def test_a_child_that_was_killed_is_reported_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "WAITS_S", (0.1,) * 5)
    with Supervised(Child("worker", SLEEPS), is_ready=False).running() as supervised:
        [child] = supervised.children
        wait_until(lambda: pid(child) > 0)
        first = pid(child)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: pid(child) not in (0, first))
    assert supervised.said == ["The worker ended by SIGKILL; starting it again in 0.1 s."]


def test_a_child_that_never_lives_ends_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "WAITS_S", (0.0,) * 5)
    fails = Child("worker", python("raise SystemExit(3)"))
    with Supervised(fails, Child("service", SLEEPS), is_ready=False).running() as supervised:
        wait_until(lambda: supervised.result is not None)
    assert supervised.result is False
    assert supervised.said[-1] == "The worker ended with exit code 3; giving up."
    assert len(supervised.said) == 5


def test_a_child_whose_model_stood_still_is_reported_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "WAITS_S", (600.0,) * 5)
    stood_still = Child("worker", python(f"raise SystemExit({STUCK_EXIT_CODE})"))
    with Supervised(stood_still, is_ready=False).running() as supervised:
        wait_until(lambda: len(supervised.said) == 1)
    assert supervised.said == [
        "The worker ended with exit code 75 (a call of the model did not return); starting it again in 600 s."
    ]


def test_a_child_that_ignores_the_request_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "STOP_WAIT_S", 0.2)
    deaf = Child("deaf", python("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"))
    with Supervised(deaf).running():
        wait_until(lambda: pid(deaf) > 0)
        time.sleep(0.5)
        number = pid(deaf)
    assert not is_running(number)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl, which only Linux has")
def test_children_do_not_outlive_a_killed_supervisor() -> None:
    child = "from indexer.cli.supervision import die_with_parent as d; import time; d(); time.sleep(600)"
    parent = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "time.sleep(2)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen(python(parent), cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        assert is_running(number)
        process.kill()
    wait_until(lambda: not is_running(number))
