"""From kill -9 of service and worker in the middle of a job until both are ready, at 100,000 passages.

    python benchmarks/recovery.py [--n 100000] [--home DIR] [--rounds 5] [--cache DIR]

Serves the collection of benchmarks/made_collection.py: a copy of the one in --home, or one made for it. Each
round sends a job of documents, kills both processes while it is worked on, starts them again, and asks one
hybrid search when they are ready. All models are there. Writes benchmarks/results/recovery_{n}.json.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import numpy as np

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, build
from tests.crash.installation import ROLES, Installation
from tests.e2e.conftest import free_port

N_DOCUMENTS = 200
SENTENCE = "The lighthouse keeper wrote down which ships had passed during the night. "


def interrupted_job(client: httpx.Client) -> None:
    """Of documents that take some seconds to encode; not waited for."""
    documents = [{"id": f"late {i}", "text": f"{i} {SENTENCE * 20}"} for i in range(N_DOCUMENTS)]
    client.post(f"/v1/collections/{MADE}/documents", json={"documents": documents}).raise_for_status()
    time.sleep(0.5)


def first_search_s(client: httpx.Client) -> float:
    began = time.perf_counter()
    answer = client.post(f"/v1/collections/{MADE}/search/asymmetric", json={"query": "ships at night"})
    answer.raise_for_status()
    return time.perf_counter() - began


def measure(installation: Installation, *, n_rounds: int) -> dict[str, Any]:
    ready_s, processor_s, search_s = [], [], []
    installation.start()
    for number in range(n_rounds):
        with httpx.Client(base_url=installation.url, timeout=120) as client:
            interrupted_job(client)
        installation.kill(*ROLES)
        installation.bury()
        ready_s.append(installation.start())
        processor_s.append(sum(seconds_of_processor(installation.pid(role)) for role in ROLES))
        with httpx.Client(base_url=installation.url, timeout=120) as client:
            search_s.append(first_search_s(client))
        print(number + 1, f"{ready_s[-1]:.2f} s, first search {search_s[-1]:.2f} s", flush=True)
    return {
        "rounds": n_rounds,
        "ready_s": summary(ready_s),
        "processor_s_of_both_until_ready": summary(processor_s),
        "first_search_s": summary(search_s),
    }


def seconds_of_processor(pid: int) -> float:
    """Which a busy machine does not lengthen."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(seconds: Sequence[float]) -> dict[str, float]:
    return {"median": round(float(np.median(seconds)), 2), "max": round(max(seconds), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--home", type=Path, help="Folder of a collection that is not in use.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="Folder of compiled models, where it is another one.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if arguments.home:
            shutil.copytree(arguments.home, folder / "home")
        build(folder / "home", arguments.n)
        settings = {"BIFOCAL_CACHE": str(arguments.cache)} if arguments.cache else {}
        installation = Installation(folder, port=free_port(), encoder="real", settings=settings)
        try:
            figures = measure(installation, n_rounds=arguments.rounds)
        finally:
            installation.stop()
    print(write_result(f"recovery_{arguments.n}", {"n_passages": arguments.n, **figures}))


if __name__ == "__main__":
    main()
