"""Requests made up from the interface description, for as long as you like: what tests/api/test_fuzz.py does.

    python benchmarks/fuzz.py [--minutes 30] [--seed 1]        (or: make fuzz MINUTES=30)

Goes around all operations again and again, with other requests each time: such as fit the description, and
such as do not; half of those to collections go to one that exists. A failure is an answer that the
description does not allow, every 5xx but a refusal that says when to come again, and a job that fails for no
reason of its own. Writes benchmarks/results/fuzz.json after each time around. Ends with exit code 1 if there
were failures.
"""

import argparse
import itertools
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import httpx
import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis.generation.modes import GenerationMode

from benchmarks.environment import write_result
from tests.api.fuzzing import call_and_validate, fuzzed_service, schema

CASES_AT_A_TIME = 20
"""Of one operation, before the next one has its turn."""


@dataclass
class Seen:
    operations: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """The first of each kind."""
    n_failures: int = 0

    @property
    def n_cases(self) -> int:
        return self.statuses.total()

    def figures(self) -> Mapping[str, Any]:
        return {
            "operations": len(self.operations),
            "cases": self.n_cases,
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "failures": self.n_failures,
            "kinds_of_failures": self.failures,
        }


def fuzz(operation: Any, base_url: str, seen: Seen, *, mode: GenerationMode, seed: int) -> None:
    """Some cases of one operation."""
    name = f"{operation.method.upper()} {operation.path}"
    is_of_collection = "/v1/collections/{collection}/" in operation.path
    seen.operations.add(name)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=CASES_AT_A_TIME,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case[Any]) -> None:
        if is_of_collection and seed % 2:
            case.path_parameters["collection"] = "demo"
        seen.statuses[call_and_validate(case, base_url)] += 1

    httpx.put(f"{base_url}/v1/collections/demo")
    try:
        run()
    except hypothesis.errors.Unsatisfiable:
        pass  # nothing can be wrong in a request without parameters
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        seen.n_failures += 1
        described = "".join(traceback.format_exception(error))[-6_000:]
        seen.failures.setdefault(f"{name}: {type(error).__name__}", described)
        print(name, described, flush=True)


def faults_of_the_worker(base_url: str) -> list[str]:
    """What failed jobs, and nobody expected."""
    jobs = httpx.get(f"{base_url}/v1/jobs", params={"state": "failed", "limit": 1_000}).json()["jobs"]
    return [f"{job['kind']}: {job['error']}" for job in jobs if "unexpected failure" in job["error"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seen, began = Seen(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, fuzzed_service(Path(folder)) as base_url:
        for seed in itertools.count(arguments.seed):
            described = schema(seed=seed)
            for result, mode in itertools.product(described.get_all_operations(), GenerationMode):
                fuzz(result.ok(), base_url, seen, mode=mode, seed=seed)
                if time.monotonic() - began > 60 * arguments.minutes:
                    break
            minutes = round((time.monotonic() - began) / 60, 1)
            faults = faults_of_the_worker(base_url)
            path = write_result(
                "fuzz", {"minutes": minutes, **seen.figures(), "faults_of_the_worker": faults}
            )
            print(minutes, seen.n_cases, seen.n_failures, *faults, flush=True)
            if minutes >= arguments.minutes:
                break
    print(path)
    raise SystemExit(1 if seen.n_failures or faults else 0)


if __name__ == "__main__":
    main()
