"""Several processes that answer, and processes that reach no network."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.e2e.conftest import ROOT, free_port, wait_until_ready
from tests.indexer.stand_ins import wait_until

BLOCK_NETWORK = """
import socket

connect = socket.socket.connect

def refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        with open({tried!r}, "a") as file:
            file.write(f"{{address}}\\n")
        raise OSError("the network is blocked")
    return connect(self, address)

def resolve(host, *arguments, **named):
    if host not in ("127.0.0.1", "::1", "localhost", None):
        with open({tried!r}, "a") as file:
            file.write(f"{{host}}\\n")
        raise socket.gaierror("the network is blocked")
    return getaddrinfo(host, *arguments, **named)

getaddrinfo = socket.getaddrinfo
socket.socket.connect = refuse
socket.getaddrinfo = resolve
"""


@contextmanager
def running(
    environment: dict[str, str], *serve_options: str
) -> Iterator[tuple[str, Sequence[subprocess.Popen[bytes]]]]:
    """Address and processes of service and worker."""
    port = free_port()
    bifocal = [sys.executable, "-m", "indexer"]
    processes = [
        subprocess.Popen([*bifocal, *arguments], cwd=ROOT, env=environment)
        for arguments in (["serve", "--port", str(port), *serve_options], ["worker"])
    ]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_until_ready(client, list(processes))
        yield f"http://127.0.0.1:{port}", processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def children(pid: int) -> set[int]:
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "resource_tracker" not in line}


def hits(address: str, query: str) -> list[str] | None:
    """Over a connection of its own, which any of the processes may take; None where it was cut off."""
    try:
        answer = httpx.post(
            f"{address}/v1/collections/shared/search/asymmetric", json={"query": query}, timeout=60
        )
    except httpx.TransportError:
        return None
    return [hit["document_id"] for hit in answer.json()["hits"]] if answer.status_code == 200 else None


def test_two_processes_answer_over_one_store_and_a_killed_one_is_replaced(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with running({**environment, "BIFOCAL_HOME": str(tmp_path)}, "--workers", "2") as (address, processes):
        httpx.put(f"{address}/v1/collections/shared").raise_for_status()
        for i in range(3):
            httpx.put(
                f"{address}/v1/collections/shared/documents/{i}",
                json={"text": f"Text of number {i}."},
                timeout=60,
            ).raise_for_status()
            found = [hits(address, "text") for _ in range(6)]
            assert all(ids is None or len(ids) == i + 1 for ids in found)  # as soon as the write is answered
            assert any(found)
        before = children(processes[0].pid)
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        wait_until(lambda: len(children(processes[0].pid) - before) == 1, timeout_s=60)
        wait_until(lambda: len(hits(address, "text") or []) == 3, timeout_s=60)


def test_nothing_reaches_for_the_network(environment: dict[str, str], tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    (tmp_path / "sitecustomize.py").write_text(BLOCK_NETWORK.format(tried=str(tried)))
    blocked = {**environment, "BIFOCAL_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)}
    blocked.pop("HF_HUB_OFFLINE", None)
    with running(blocked) as (address, _):
        httpx.put(f"{address}/v1/collections/shared").raise_for_status()
        httpx.put(
            f"{address}/v1/collections/shared/documents/a", json={"text": "A text."}, timeout=60
        ).raise_for_status()
        assert hits(address, "text") == ["a"]
        assert httpx.get(f"{address}/docs").status_code == 200
    assert not tried.exists()
