"""`bifocal up` with the real service, worker and encoder."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.indexer.stand_ins import wait_until

ROOT = Path(__file__).parents[2]


class Up:
    """The running command: what it has printed, and its address."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines += iter(self.process.stdout.readline, "")

    def printed(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    @property
    def url(self) -> str:
        found = re.search(r"(http://\S+)/docs", "".join(self.lines))
        assert found is not None
        return found[1]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join()
        return code


def children(pid: int) -> dict[str, int]:
    """Process ids by command, of the children of a process."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return {line.split()[4]: int(line.split()[0]) for line in listed.stdout.splitlines()}


@contextmanager
def up(home: Path, cache: Path, *arguments: str, lease_s: float = 15) -> Iterator[Up]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BIFOCAL_")}
    with subprocess.Popen(
        [sys.executable, "-m", "indexer", "up", "--port", "0", *arguments],
        cwd=ROOT,
        env={
            **clean,
            "BIFOCAL_HOME": str(home),
            "BIFOCAL_CACHE": str(cache),
            "BIFOCAL_LEASE_S": str(lease_s),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        running = Up(process)
        try:
            wait_until(
                lambda: running.printed("Bifocal is ready") or process.poll() is not None, timeout_s=120
            )
            assert running.printed("Bifocal is ready"), running.lines
            yield running
        finally:
            running.end(signal.SIGTERM)


def request(url: str, body: dict[str, Any] | None = None, *, method: str = "GET") -> Any:
    encoded = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(url, encoded, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(sent, timeout=60) as response:
        return json.load(response)


def test_the_demo_answers_a_question_and_a_write_is_found_at_once(tmp_path: Path, model_cache: Path) -> None:
    with up(tmp_path, model_cache, "--demo") as running:
        demo = f"{running.url}/v1/collections/demo"
        question = {"query": "Who measured the alternating current of Tesla's laboratory?", "top_k": 3}
        hits = request(f"{demo}/search/asymmetric", question, method="POST")["hits"]
        assert {hit["title"] for hit in hits} == {"Nikola Tesla"}
        request(f"{demo}/documents/new", {"text": "Zebras graze beside the lighthouse."}, method="PUT")
        found = request(f"{demo}/search/asymmetric", {"query": "zebras at a lighthouse"}, method="POST")
        assert found["hits"][0]["document_id"] == "new"


@pytest.mark.skipif(sys.platform != "linux", reason="finds child processes with the ps of Linux")
def test_a_killed_worker_is_started_again_and_writes_go_on(tmp_path: Path, model_cache: Path) -> None:
    with up(tmp_path, model_cache, lease_s=2) as running:
        worker = children(running.process.pid)["worker"]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: running.printed("The worker ended by SIGKILL; starting it again in 1 s."))
        wait_until(lambda: children(running.process.pid).get("worker", worker) != worker)
        request(f"{running.url}/v1/collections/notes", {}, method="PUT")
        url = f"{running.url}/v1/collections/notes/documents/new"
        request(url, {"text": "Zebras graze beside the lighthouse."}, method="PUT")
        wait_until(lambda: request(f"{running.url}/v1/jobs")["jobs"][0]["state"] == "succeeded", timeout_s=60)


@pytest.mark.skipif(sys.platform != "linux", reason="finds child processes with the ps of Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both_in_order(tmp_path: Path, model_cache: Path, number: signal.Signals) -> None:
    with up(tmp_path, model_cache) as running:
        pids = children(running.process.pid)
        assert set(pids) == {"serve", "worker"}
        assert running.end(number) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())
        assert running.printed("worker stopped")
        assert running.printed("Application shutdown complete")
        assert not running.printed("Traceback")
