"""How long a backup takes while searches are served, what it costs them, and how long a restore takes.

    python benchmarks/backup.py --home DIR [--queries 500]

DIR has the store of benchmarks/made_collection.py; it is only read. Serves it with `bifocal serve`, asks the
claims of SciFact one after the other, hybrid, first alone and then while `bifocal backup` runs. Then restores
the file into another folder and has it examined. Writes benchmarks/results/backup_{n}.json.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.environment import write_result
from benchmarks.made_collection import MADE, scifact_queries
from benchmarks.service import N_WARM_UP, latencies_ms
from benchmarks.serving import percentiles, served

ROOT = Path(__file__).parents[1]
MODE = "hybrid"
PER_LOOK = 5
"""Queries between two looks whether the backup still runs."""
NOT_EXAMINED = "encoding"
"""The vectors of the made collection are mixtures, not those of its texts."""


def bifocal(*arguments: str, home: Path) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-m", "indexer", *arguments, "--json"],
        env={**os.environ, "BIFOCAL_HOME": str(home)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if not run.stdout:
        raise RuntimeError(run.stderr)
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def measure(home: Path, folder: Path, n_queries: int) -> dict[str, Any]:
    queries = scifact_queries()
    with served(home) as (address, _, _):
        latencies_ms(address, queries[:N_WARM_UP], MODE)
        alone = latencies_ms(address, queries[:n_queries], MODE)
        file = folder / "store.tar.gz"
        began = time.perf_counter()
        backup = subprocess.Popen(
            [sys.executable, "-m", "indexer", "backup", str(file), "--json"],
            env={**os.environ, "BIFOCAL_HOME": str(home)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        beside: list[float] = []
        asked = itertools.cycle(queries)
        while backup.poll() is None:
            beside += latencies_ms(address, list(itertools.islice(asked, PER_LOOK)), MODE)
        seconds = time.perf_counter() - began
    if backup.returncode:
        raise RuntimeError("the backup failed")
    assert backup.stdout is not None
    made = json.loads(backup.stdout.read())
    print(f"backup: {seconds:.1f} s, {made['file_bytes'] / 2**20:.0f} MiB", flush=True)
    return {
        "n_passages": made["counts"]["passages"],
        "backup": {
            "seconds": round(seconds, 1),
            "seconds_without_start": made["seconds"],
            "rows_bytes": (home / "bifocal.db").stat().st_size,
            "file_bytes": made["file_bytes"],
        },
        "searches": {
            "mode": MODE,
            "alone": percentiles(alone),
            "beside_the_backup": {"n_queries": len(beside), **percentiles(beside)},
        },
        "restore": measure_restore(file, folder / "restored"),
    }


def measure_restore(file: Path, home: Path) -> dict[str, Any]:
    began = time.perf_counter()
    restored = bifocal("restore", str(file), "--data", str(home), home=home)
    seconds = time.perf_counter() - began
    print(f"restore: {seconds:.1f} s", flush=True)
    examined = bifocal("doctor", "--sample", "0", home=home)
    return {
        "seconds": round(seconds, 1),
        "seconds_without_start": restored["seconds"],
        "checks_with_problems": [
            check["name"]
            for check in examined["checks"]
            if check["status"] == "problem" and check["name"] != NOT_EXAMINED
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.home.parent) as folder:
        figures = measure(arguments.home, Path(folder), arguments.queries)
    path = write_result(f"backup_{figures['n_passages']}", {"collection": MADE, **figures})
    print(path)


if __name__ == "__main__":
    main()
