"""kill -9, again and again, and what is left of acknowledged writes: the rounds of tests/crash, many of them.

    python benchmarks/kills.py [--rounds 200] [--documents 1200] [--encoder real|stand-in] [--seed 1]

Starts the service and the worker over a temporary store of some documents, writes, replaces and deletes
others from four clients while a fifth searches, kills the service, the worker, both, or one of them at a
chosen point (half of these inside publication and compaction), starts again what died, and compares the
store with what was acknowledged. The encoder is the real one; models with heads, which take no part in
writes, are left out. Writes benchmarks/results/kills.json after every ten rounds. Ends with exit
code 1 if anything was lost or wrong.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from benchmarks.environment import write_result
from tests.crash.rounds import KINDS, Round, Trial, trial

WRITERS, DOCUMENTS_EACH = 4, 10
SETTINGS = {
    "BIFOCAL_COMPACT_TAIL": "60",
    "BIFOCAL_EXACT_LIMIT": "0",  # approximate from 1000 vectors on, which is the least
    "BIFOCAL_WAIT_S": "1",
}


def figures(done: Sequence[Round], running: Trial) -> dict[str, Any]:
    recovery_s = [each.recovery_s for each in done]
    faults = [fault for each in done for fault in each.faults]
    kinds = Counter(fault.partition(":")[0] for fault in faults)
    points = Counter(str(each.trap) for each in done if each.is_trap_sprung)
    return {
        "rounds": len(done),
        "kills": dict(Counter(each.kind for each in done)),
        "killed": dict(Counter(" and ".join(each.killed) for each in done)),
        "points_reached": sum(points.values()),
        "points": dict(sorted(points.items())),
        "acknowledged_writes": running.ledger.n_writes,
        "acknowledged_deletes": running.ledger.n_deletes,
        "searches_judged_while_writing": sum(each.n_searches_judged for each in done),
        "lost": kinds["lost"],
        "wrong": kinds["wrong"],
        "counts_that_disagree": kinds["disagree"],
        "errors": kinds["error"],
        "faults": faults[:20],
        "recovery_s": {
            "median": round(float(np.median(recovery_s)), 2),
            "p95": round(float(np.percentile(recovery_s, 95)), 2),
            "max": round(max(recovery_s), 2),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--documents", type=int, default=1200, help="That are there before and stay.")
    parser.add_argument("--encoder", choices=["real", "stand-in"], default="real")
    parser.add_argument("--cache", type=Path, help="Folder of compiled models, where it is another one.")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    settings = {**SETTINGS, **({"BIFOCAL_CACHE": str(arguments.cache)} if arguments.cache else {})}
    random, done = Random(arguments.seed), []
    with (
        tempfile.TemporaryDirectory() as folder,
        trial(
            Path(folder) / "installation",
            encoder=arguments.encoder,
            seed=arguments.seed,
            n_writers=WRITERS,
            n_documents_each=DOCUMENTS_EACH,
            n_documents_before=arguments.documents,
            settings={**settings, "BIFOCAL_MODELS": str(Path(folder) / "none")},
        ) as running,
    ):
        for number in range(1, arguments.rounds + 1):
            done.append(running.round(random.choice(KINDS)))
            last = done[-1]
            print(number, last.kind, last.trap, f"{last.recovery_s:.2f} s", *last.faults, flush=True)
            if last.faults:
                print(running.installation.logs(), flush=True)
            if number % 10 == 0 or number == arguments.rounds:
                found = figures(done, running)
                path = write_result(
                    "kills", {"encoder": arguments.encoder, "documents": arguments.documents, **found}
                )
    print(path)
    raise SystemExit(1 if found["faults"] else 0)


if __name__ == "__main__":
    main()
