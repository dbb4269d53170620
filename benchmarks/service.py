"""Latency, throughput, memory and start of the real service over HTTP.

    python benchmarks/service.py [--n 100000] [--home DIR] [--modes dense,hybrid,lexical,rerank,answers]

Serves the collection of benchmarks/made_collection.py with `bifocal serve` and sends it the claims of
SciFact, first from one client, then from 16 at a time, all on the same cores as the service. `rerank` is
hybrid search with 20 candidates reranked, `answers` also reads the ten hits; both ask fewer. Writes
benchmarks/results/service_{n}.json.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, build, scifact_queries

N_WARM_UP = 50
N_QUERIES = 500
N_SLOW_QUERIES = 100
BODIES: dict[str, dict[str, Any]] = {
    "dense": {"mode": "dense"},
    "hybrid": {"mode": "hybrid"},
    "lexical": {"mode": "lexical"},
    "rerank": {"mode": "hybrid", "rerank": True},
    "answers": {"mode": "hybrid", "rerank": True, "answers": True},
}
N_CLIENTS = 16
READY_WITHIN_S = 60


@contextmanager
def served(home: Path) -> Iterator[tuple[str, int, float]]:
    """(address, process id, seconds from start to ready) of a service over that store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {**os.environ, "BIFOCAL_HOME": str(home), "BIFOCAL_LOG_LEVEL": "warning"}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        variables.pop(name, None)
    began = time.perf_counter()
    command = [sys.executable, "-m", "indexer", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=variables, cwd=Path(__file__).parents[1])
    address = f"http://127.0.0.1:{port}"
    try:
        ready_s = _seconds_until_models_are_loaded(address, began)
        yield address, process.pid, ready_s
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def _seconds_until_models_are_loaded(address: str, began: float) -> float:
    """A worker is not needed to answer queries, so its check is left out."""
    while time.perf_counter() - began < READY_WITHIN_S:
        try:
            if httpx.get(f"{address}/v1/models").status_code == 200:
                return time.perf_counter() - began
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise RuntimeError(f"not ready within {READY_WITHIN_S} s")


def resident_mib(process_id: int, field: str = "VmRSS") -> float:
    for line in Path(f"/proc/{process_id}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field):
            return round(int(line.split()[1]) / 1024, 1)
    raise RuntimeError(f"no {field}")


def latencies_ms(address: str, queries: Sequence[str], mode: str) -> list[float]:
    taken = []
    with httpx.Client(base_url=address, timeout=60) as client:
        for query in queries:
            began = time.perf_counter()
            body = {"query": query, "top_k": 10, **BODIES[mode]}
            answer = client.post(f"/v1/collections/{MADE}/search/asymmetric", json=body)
            taken.append(1000 * (time.perf_counter() - began))
            answer.raise_for_status()
    return taken


def percentiles(taken: Sequence[float]) -> dict[str, float]:
    return {f"p{p}_ms": round(float(np.percentile(taken, p)), 2) for p in (50, 95, 99)}


def under_load(address: str, queries: Sequence[str], mode: str) -> dict[str, float]:
    parts = [queries[i::N_CLIENTS] for i in range(N_CLIENTS)]
    taken: list[float] = []
    threads = [
        threading.Thread(target=lambda part=part: taken.extend(latencies_ms(address, part, mode)))
        for part in parts
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    assert len(taken) == len(queries), "a request failed"
    return {"queries_per_s": round(len(queries) / seconds, 1), **percentiles(taken)}


def measure(home: Path, modes: Sequence[str]) -> dict[str, Any]:
    queries = scifact_queries()[: N_WARM_UP + N_QUERIES]
    figures: dict[str, Any] = {}
    with served(home) as (address, process_id, ready_s):
        figures["ready_s"] = round(ready_s, 2)
        figures["resident_mib_when_ready"] = resident_mib(process_id)
        for mode in modes:
            asked = queries[N_WARM_UP:]
            if BODIES[mode].get("rerank"):
                asked = asked[:N_SLOW_QUERIES]
            latencies_ms(address, queries[:N_WARM_UP], mode)
            figures[mode] = {
                "n_queries": len(asked),
                "one_client": percentiles(latencies_ms(address, asked, mode)),
                f"{N_CLIENTS}_clients": under_load(address, asked, mode),
            }
            print(mode, figures[mode], flush=True)
        figures["resident_mib_after"] = resident_mib(process_id)
    return figures


def measure_empty() -> dict[str, float]:
    """Start and memory over an empty store, the model loaded; the median of five starts."""
    starts, memory = [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as home, served(Path(home)) as (_, process_id, ready_s):
            starts.append(ready_s)
            memory.append(resident_mib(process_id))
    return {"ready_s": round(float(np.median(starts)), 2), "resident_mib": float(np.median(memory))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--home", type=Path, help="Folder of the collection; not given: temporary.")
    parser.add_argument("--modes", default=",".join(BODIES))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        seconds = build(home, arguments.n)
        figures = measure(home, arguments.modes.split(","))
    path = write_result(
        f"service_{arguments.n}",
        {
            "n_passages": arguments.n,
            "top_k": 10,
            "build_seconds": {stage: round(s, 1) for stage, s in seconds.items()},
            "empty_store": measure_empty(),
            **figures,
        },
    )
    print(path)


if __name__ == "__main__":
    main()
