"""The files of an evaluation of a task: results.json, what was given and expected for each example, and how
far the probabilities can be believed."""

import csv
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from indexer.evaluation.reliability import write_reliability
from indexer.evaluation.results import machine, versions
from indexer.evaluation.statistics import CONFIDENCE, N_RESAMPLES, SEED
from indexer.evaluation.task_judging import Judged


def write_task(
    judged: Judged, folder: Path, *, task: str, data: Path, model: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """Write the files, replacing those of an evaluation before; gives what results.json holds."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "made_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "task": task,
        "data": data.name,
        "model": dict(model),
        "n_examples": judged.n_examples,
        "examples_per_s": round(judged.n_examples / seconds, 2),
        "method": {
            "interval": f"bootstrap over examples, percentile, {CONFIDENCE:.0%}",
            "n_resamples": N_RESAMPLES,
            "seed": SEED,
        },
        "metrics": {name: asdict(value) for name, value in judged.metrics.items()},
        "reliability": {name: [asdict(each) for each in bins] for name, bins in judged.reliability.items()},
        "notes": list(judged.notes),
    }
    written = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(written + "\n", encoding="utf-8")
    with (folder / "examples.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect="excel-tab", lineterminator="\n")
        writer.writerow(judged.columns)
        writer.writerows([" ".join(value.split()) for value in row] for row in judged.rows)
    if judged.reliability:
        write_reliability(judged.reliability, folder / "reliability.svg")
    return found
