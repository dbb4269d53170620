"""Search under filters beside search without one, over HTTP: latency, and that no hit is missing.

    python benchmarks/filtered.py [--n 1000000] [--home DIR] [--modes dense,lexical,hybrid] [--queries 200]

Serves the collection of benchmarks/made_collection.py and asks each of SciFact's claims five ways, in
turns: without a filter, and under filters that let 50 %, 10 %, 1 % and 0.1 % of the documents through.
Every answer to a search by meaning or by both must have exactly as many hits as were asked for, or as
documents pass; a search by words finds at most that. A filter's documents are looked up once and kept:
the first ten queries, which are not counted, pay for it; `new_filter_ms` is of searches under filters
that were never seen before. Writes benchmarks/results/filtered_{n}.json.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, N_PARTS, build, scifact_queries
from benchmarks.serving import percentiles, served

TOP_K = 10
N_WARM_UP = 10
MODES = ("dense", "lexical", "hybrid")
FILTERS: Mapping[str, Mapping[str, Any] | None] = {
    "none": None,
    "50 %": {"field": "part", "lt": N_PARTS // 2},
    "10 %": {"field": "part", "lt": N_PARTS // 10},
    "1 %": {"field": "part", "lt": N_PARTS // 100},
    "0.1 %": {"field": "part", "lt": N_PARTS // 1000},
}
N_NEW = 20


class Asked:
    def __init__(self, client: httpx.Client, n_documents: int) -> None:
        self._client = client
        self._n_documents = n_documents

    def ms(self, query: str, mode: str, condition: Mapping[str, Any] | None) -> float:
        """Milliseconds of one search; raises where it has not the hits that it must have."""
        body = {"query": query, "mode": mode, "top_k": TOP_K}
        if condition is not None:
            body["filter"] = condition
        began = time.perf_counter()
        answer = self._client.post(f"/v1/collections/{MADE}/search/asymmetric", json=body)
        taken = 1000 * (time.perf_counter() - began)
        answer.raise_for_status()
        n_hits, expected = len(answer.json()["hits"]), min(TOP_K, self._n_matching(condition))
        if n_hits > expected or (mode != "lexical" and n_hits < expected):
            raise SystemExit(f"{n_hits} hits for {query!r} by {mode} under {condition}, not {expected}")
        return taken

    def _n_matching(self, condition: Mapping[str, Any] | None) -> int:
        """Parts are dealt out in turns: 0, 1, ... 999, 0, 1, ..."""
        if condition is None:
            return self._n_documents
        rounds, rest = divmod(self._n_documents, N_PARTS)
        first, last = int(condition.get("gte", 0)), int(condition["lt"])
        return rounds * (last - first) + max(0, min(rest, last) - first)


def measure(home: Path, n: int, modes: Sequence[str], n_queries: int) -> dict[str, Any]:
    queries = scifact_queries()[: N_WARM_UP + n_queries]
    found: dict[str, Any] = {}
    with served(home) as (address, _, _), httpx.Client(base_url=address, timeout=60) as client:
        asked = Asked(client, n)
        for mode in modes:
            taken: dict[str, list[float]] = {name: [] for name in FILTERS}
            for query in queries:
                for name, condition in FILTERS.items():
                    taken[name].append(asked.ms(query, mode, condition))
            of_mode = {name: percentiles(ms[N_WARM_UP:]) for name, ms in taken.items()}
            p95 = of_mode["none"]["p95_ms"]
            found[mode] = {
                name: {**figures, "p95_to_unfiltered": round(figures["p95_ms"] / p95, 2)}
                for name, figures in of_mode.items()
            }
            print(mode, found[mode], flush=True)
        found["new_filter_ms"] = new_filters(asked, queries)
    return found


def new_filters(asked: Asked, queries: Sequence[str]) -> dict[str, dict[str, float]]:
    """By both, under ranges that nobody asked for before."""
    found = {}
    for name, n_parts in {"10 %": N_PARTS // 10, "1 %": N_PARTS // 100, "0.1 %": 1}.items():
        ranges = [{"field": "part", "gte": 1 + i, "lt": 1 + i + n_parts} for i in range(N_NEW)]
        searches = zip(queries, ranges, strict=False)
        found[name] = percentiles([asked.ms(query, "hybrid", condition) for query, condition in searches])
    print(found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path, help="Folder of the collection; not given: temporary.")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        build(home, arguments.n)
        figures = measure(home, arguments.n, arguments.modes.split(","), arguments.queries)
    result = {"n_documents": arguments.n, "n_queries": arguments.queries, "top_k": TOP_K, **figures}
    print(write_result(f"filtered_{arguments.n}", result))


if __name__ == "__main__":
    main()
