"""From sending one document until a search finds it, in a collection that is already large.

    python benchmarks/freshness.py [--n 1000000] [--home DIR] [--rounds 50]

Serves the collection of benchmarks/made_collection.py with service and worker. Each round puts a
document with a sentence that no other one has, and searches for it by words, by meaning and by both
until all three find it. `answered` is when the PUT was answered, `found` when the searches had found it,
`deleted` when the DELETE was answered, after which none may find it. Writes
benchmarks/results/freshness_{n}.json.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, build
from benchmarks.serving import percentiles, resident_mib, served, working

MODES = ("lexical", "dense", "hybrid")
PLACES = ("lighthouse", "harbour", "monastery", "observatory", "windmill")
GIVEN_UP_S = 60.0


def sentence(number: int) -> str:
    return f"The keeper of {PLACES[number % len(PLACES)]} qx{number}z keeps a diary about lost umbrellas."


def found_by(client: httpx.Client, mode: str, number: int) -> bool:
    body = {"query": sentence(number), "mode": mode, "top_k": 3}
    answer = client.post(f"/v1/collections/{MADE}/search/asymmetric", json=body)
    answer.raise_for_status()
    return f"fresh {number}" in [hit["document_id"] for hit in answer.json()["hits"]]


def round_ms(client: httpx.Client, number: int) -> dict[str, float]:
    """Milliseconds since the start of the round, and of the deletion."""
    path = f"/v1/collections/{MADE}/documents/fresh%20{number}"
    began = time.perf_counter()
    client.put(path, json={"text": sentence(number)}).raise_for_status()
    taken = {"answered": 1000 * (time.perf_counter() - began)}
    for mode in MODES:
        while not found_by(client, mode, number):
            if time.perf_counter() - began > GIVEN_UP_S:
                raise SystemExit(f"{mode} does not find document {number} after {GIVEN_UP_S:.0f} s")
    taken["found"] = 1000 * (time.perf_counter() - began)
    began = time.perf_counter()
    client.delete(path).raise_for_status()
    taken["deleted"] = 1000 * (time.perf_counter() - began)
    if found := [mode for mode in MODES if found_by(client, mode, number)]:
        raise SystemExit(f"document {number} was deleted, and is found by {found}")
    return taken


def measure(home: Path, n_rounds: int) -> dict[str, Any]:
    with (
        served(home) as (address, service_id, _),
        working(home, address) as worker_id,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        round_ms(client, 0)
        rounds = [round_ms(client, number) for number in range(1, n_rounds + 1)]
        return {
            **{stage: percentiles([each[stage] for each in rounds]) for stage in rounds[0]},
            "resident_mib": {"service": resident_mib(service_id), "worker": resident_mib(worker_id)},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--home", type=Path, help="Folder of the collection; not given: temporary.")
    parser.add_argument("--rounds", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.home or Path(temporary)
        build(home, arguments.n)
        figures = measure(home, arguments.rounds)
    result = {"n_documents": arguments.n, "rounds": arguments.rounds, **figures}
    print(write_result(f"freshness_{arguments.n}", result))


if __name__ == "__main__":
    main()
