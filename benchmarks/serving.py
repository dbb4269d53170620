"""Service and worker as users run them, for the benchmarks that ask over HTTP."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

ROOT = Path(__file__).parents[1]
READY_WITHIN_S = 120
POLL_S = 0.02


@contextmanager
def served(home: Path, *, cache: Path | None = None) -> Iterator[tuple[str, int, float]]:
    """(address, process id, seconds from start to ready) of a service over that store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.perf_counter()
    process = _started(home, cache, "serve", "--port", str(port))
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/v1/models")
        yield address, process.pid, time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


@contextmanager
def working(home: Path, address: str, *, cache: Path | None = None) -> Iterator[int]:
    """Process id of a worker of that store, once the service at that address sees it."""
    process = _started(home, cache, "worker")
    try:
        _wait_for(f"{address}/readyz")
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def _started(home: Path, cache: Path | None, *command: str) -> subprocess.Popen[bytes]:
    variables = {**os.environ, "BIFOCAL_HOME": str(home), "BIFOCAL_LOG_LEVEL": "warning"}
    variables |= {"BIFOCAL_CACHE": str(cache)} if cache else {}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        variables.pop(name, None)
    return subprocess.Popen([sys.executable, "-m", "indexer", *command], env=variables, cwd=ROOT)


def _wait_for(url: str) -> None:
    """Until it answers 200: `/v1/models` when there are models, `/readyz` when there is a worker, too."""
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(POLL_S)
    raise RuntimeError(f"{url} is not ready within {READY_WITHIN_S} s")


def resident_mib(process_id: int, field: str = "VmRSS") -> float:
    for line in Path(f"/proc/{process_id}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return round(int(line.split()[1]) / 1024, 1)
    raise RuntimeError(f"no {field}")


def percentiles(taken: Sequence[float]) -> dict[str, float]:
    return {f"p{p}_ms": round(float(np.percentile(taken, p)), 2) for p in (50, 95, 99)}
