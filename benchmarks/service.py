"""Latency, throughput, memory and start of the real service over HTTP.

    python benchmarks/service.py [--n 100000] [--home DIR] [--modes dense,hybrid,lexical,rerank,answers]

Serves the collection of benchmarks/made_collection.py with `bifocal serve` and sends it the claims of
SciFact, first from one client, then from 16 at a time, all on the same cores as the service. `rerank` is
hybrid search with 20 candidates reranked, `answers` also reads the ten hits; both ask fewer. Writes
benchmarks/results/service_{n}.json.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, build, scifact_queries
from benchmarks.serving import percentiles, resident_mib, served

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
                "resident_mib_after": resident_mib(process_id),
            }
            print(mode, figures[mode], flush=True)
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
