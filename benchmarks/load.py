"""Mixed reads and writes from 16 clients for some minutes: statuses, latencies, and memory over time.

    python benchmarks/load.py [--minutes 10] [--clients 16] [--cache DIR]

Starts `bifocal serve` and `bifocal worker` over a temporary store of the demo corpus. Each client asks, one
request after the other: hybrid, lexical and dense searches, answers, upserts of one document (the answer
comes when it can be found), deletions, and listings page by page with their cursor. Writes
benchmarks/results/load.json. Ends with exit code 1 after a 5xx other than 503, or a growth of memory of 5 %.

Growth compares medians: of the third quarter of the run with the last one. Before, models are loaded at their
first use and caches fill.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from benchmarks.environment import write_result
from benchmarks.serving import percentiles, resident_mib, served, working
from indexer.demo import CORPUS

COLLECTION = "/v1/collections/load"
SAMPLE_EVERY_S = 5.0
MAX_GROWTH = 0.05
DOCUMENTS: Sequence[Mapping[str, Any]] = [
    json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()
]


@dataclass
class Seen:
    """By all clients together."""

    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, operation: str, answer: httpx.Response, ms: float) -> None:
        with self.lock:
            self.statuses[operation][answer.status_code] += 1
            self.ms[operation].append(ms)
            if answer.status_code >= 500 and answer.status_code != 503:
                self.failures.append(f"{operation}: {answer.status_code} {answer.text[:500]}")


class Client:
    def __init__(self, address: str, seen: Seen, *, seed: int) -> None:
        self._http = httpx.Client(base_url=address, timeout=120)
        self._seen = seen
        self._random = Random(seed)
        self._cursor: str | None = None
        self._shares: Mapping[Callable[[], httpx.Response], int] = {
            self.hybrid: 30,
            self.lexical: 15,
            self.dense: 15,
            self.answer: 5,
            self.upsert: 20,
            self.delete: 5,
            self.list: 10,
        }

    def run(self, until: float) -> None:
        operations, shares = list(self._shares), list(self._shares.values())
        with self._http:
            while time.perf_counter() < until:
                operation = self._random.choices(operations, shares)[0]
                began = time.perf_counter()
                answer = operation()
                self._seen.count(operation.__name__, answer, 1000 * (time.perf_counter() - began))
                if answer.status_code == 503:
                    time.sleep(float(answer.headers["Retry-After"]))

    def hybrid(self) -> httpx.Response:
        return self._search("hybrid")

    def lexical(self) -> httpx.Response:
        return self._search("lexical")

    def dense(self) -> httpx.Response:
        return self._search("dense")

    def answer(self) -> httpx.Response:
        question = f"What is known about {self._words(4)}?"
        return self._http.post(f"{COLLECTION}/answer", json={"question": question, "candidates": 5})

    def upsert(self) -> httpx.Response:
        """Of other text than before: the sentences of one paragraph in another order."""
        document = self._random.choice(DOCUMENTS)
        sentences = document["text"].split(". ")
        text = ". ".join(self._random.sample(sentences, len(sentences)))
        return self._http.put(self._url(document), json={"text": text, "title": document["title"]})

    def delete(self) -> httpx.Response:
        return self._http.delete(self._url(self._random.choice(DOCUMENTS)))

    def list(self) -> httpx.Response:
        after = {"cursor": self._cursor} if self._cursor else {}
        answer = self._http.get(f"{COLLECTION}/documents", params={"limit": "50", **after})
        self._cursor = answer.json()["next_cursor"] if answer.status_code == 200 else None
        return answer

    def _search(self, mode: str) -> httpx.Response:
        body = {"query": self._words(self._random.randint(1, 8)), "mode": mode}
        return self._http.post(f"{COLLECTION}/search/asymmetric", json=body)

    def _words(self, n_words: int) -> str:
        words = self._random.choice(DOCUMENTS)["text"].split()
        start = self._random.randrange(max(1, len(words) - n_words))
        return " ".join(words[start : start + n_words])

    def _url(self, document: Mapping[str, Any]) -> str:
        return f"{COLLECTION}/documents/{document['id'].replace('/', '%2F')}"


class Memory(threading.Thread):
    """Samples the resident memory of processes."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        super().__init__(daemon=True)
        self.mib: dict[str, list[float]] = {name: [] for name in pids}
        self._pids = pids
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(SAMPLE_EVERY_S):
            for name, pid in self._pids.items():
                self.mib[name].append(resident_mib(pid))

    def stop(self) -> None:
        self._end.set()
        self.join()

    def growth(self, name: str) -> float:
        quarter = max(1, len(self.mib[name]) // 4)
        before, after = self.mib[name][-2 * quarter : -quarter], self.mib[name][-quarter:]
        return float(np.median(after) / np.median(before)) - 1


def fill(address: str) -> None:
    httpx.put(f"{address}{COLLECTION}").raise_for_status()
    answer = httpx.post(
        f"{address}{COLLECTION}/documents",
        json={"documents": list(DOCUMENTS)},
        headers={"Prefer": "wait=60"},
        timeout=90,
    )
    answer.raise_for_status()


def measure(address: str, pids: Mapping[str, int], *, minutes: float, n_clients: int) -> dict[str, Any]:
    fill(address)
    seen, memory = Seen(), Memory(pids)
    memory.start()
    began = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as pool:
        clients = [Client(address, seen, seed=seed) for seed in range(n_clients)]
        for finished in [pool.submit(client.run, began + 60 * minutes) for client in clients]:
            finished.result()
    seconds = time.perf_counter() - began
    memory.stop()
    all_ms = [ms for of_one in seen.ms.values() for ms in of_one]
    return {
        "seconds": round(seconds, 1),
        "requests": len(all_ms),
        "requests_per_s": round(len(all_ms) / seconds, 1),
        "statuses": {name: dict(sorted(counts.items())) for name, counts in sorted(seen.statuses.items())},
        "n_5xx_other_than_503": len(seen.failures),
        "failures": seen.failures[:10],
        "all": percentiles(all_ms),
        "operations": {name: percentiles(ms) for name, ms in sorted(seen.ms.items())},
        "resident_mib": {
            name: {
                "growth": round(memory.growth(name), 4),
                "first": samples[0],
                "last": samples[-1],
                "every_30_s": samples[:: round(30 / SAMPLE_EVERY_S)],
            }
            for name, samples in memory.mib.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--cache", type=Path, help="Folder of compiled models, where it is another one.")
    arguments = parser.parse_args()
    load_before = round(os.getloadavg()[0], 1)
    cache = arguments.cache
    with (
        tempfile.TemporaryDirectory() as temporary,
        served(home := Path(temporary), cache=cache) as (address, service_id, _),
        working(home, address, cache=cache) as worker_id,
    ):
        pids = {"service": service_id, "worker": worker_id}
        figures = measure(address, pids, minutes=arguments.minutes, n_clients=arguments.clients)
    path = write_result("load", {"clients": arguments.clients, "load_average_before": load_before, **figures})
    print(path.read_text(encoding="utf-8"))
    growths = [memory["growth"] for memory in figures["resident_mib"].values()]
    raise SystemExit(1 if figures["failures"] or max(growths) >= MAX_GROWTH else 0)


if __name__ == "__main__":
    main()
