"""The product as its users start it: service and worker as processes, real model, real files."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 60.0


@pytest.fixture(scope="session")
def environment(model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {
        **os.environ,
        "BIFOCAL_HOME": str(tmp_path_factory.mktemp("e2e") / "data"),
        "BIFOCAL_CACHE": str(model_cache),
        "BIFOCAL_RUNTIME": "openvino",
    }


@pytest.fixture(scope="session")
def service(environment: dict[str, str]) -> Iterator[httpx.Client]:
    """A client of `bifocal serve`, with `bifocal worker` beside it."""
    port = free_port()
    bifocal = [sys.executable, "-m", "indexer"]
    processes = [
        subprocess.Popen([*bifocal, *arguments], cwd=ROOT, env=environment)
        for arguments in (["serve", "--port", str(port)], ["worker"])
    ]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_until_ready(client, processes)
            yield client
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_ready(client: httpx.Client, processes: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        assert all(process.poll() is None for process in processes)
        try:
            answer = client.get("/readyz")
        except httpx.TransportError:
            pass
        else:
            if answer.status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError("service and worker are not ready")
