"""An evaluation as one JSON value, from which every report is made."""

import datetime as dt
import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from indexer.evaluation.asking import Measured
from indexer.evaluation.comparison import Difference
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.indexing import Indexed
from indexer.evaluation.metrics import DEPTH
from indexer.evaluation.statistics import CONFIDENCE, N_RESAMPLES, SEED, estimate
from indexer.evaluation.tuning import Tuning

PACKAGES = (
    "bifocal",
    "faiss-cpu",
    "numpy",
    "openvino",
    "pytrec-eval-terrier",
    "scipy",
    "tantivy",
    "tokenizers",
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    dataset: Dataset
    measured: Sequence[Measured]
    differences: Sequence[Difference]
    subject: Mapping[str, Any]
    """What was searched: model, collection, service."""
    indexed: Indexed | None
    """None: the documents were there."""
    made_at: dt.datetime
    tuning: Tuning | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        cut = [
            f"{m.name}: {m.n_truncated} queries were longer than the encoder takes and were cut"
            for m in self.measured
            if m.n_truncated
        ]
        return (*self.dataset.notes, *(self.indexed.notes if self.indexed else ()), *cut)


def results(evaluation: Evaluation) -> dict[str, Any]:
    dataset = evaluation.dataset
    return {
        "made_at": evaluation.made_at.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "data_set": {
            "name": dataset.name,
            "split": dataset.split,
            "n_documents": dataset.n_documents,
            "n_queries": len(dataset.queries),
            "n_judgements": dataset.n_judgements,
        },
        "notes": list(evaluation.notes),
        "subject": dict(evaluation.subject),
        "indexing": _indexing(evaluation.indexed),
        "method": {
            "depth": DEPTH,
            "interval": f"bootstrap over queries, percentile, {CONFIDENCE:.0%}",
            "test": "paired randomisation, two-sided, Holm over the pairs of a metric",
            "n_resamples": N_RESAMPLES,
            "seed": SEED,
        },
        "tuning": _tuning(evaluation.tuning),
        "configurations": [_configuration(each) for each in evaluation.measured],
        "differences": [asdict(each) for each in evaluation.differences],
    }


def _configuration(measured: Measured) -> dict[str, Any]:
    return {
        "name": measured.name,
        "fields": measured.configuration.fields,
        "metrics": {metric: asdict(estimate(values)) for metric, values in measured.metrics.items()},
        "latency_ms": {
            stage: dict(zip(("p50", "p95"), np.percentile(values, [50, 95]).round(3).tolist(), strict=True))
            for stage, values in measured.latencies_ms.items()
        },
        "n_truncated": measured.n_truncated,
    }


def _tuning(tuning: Tuning | None) -> dict[str, Any] | None:
    if tuning is None:
        return None
    return {**asdict(tuning), "chosen": tuning.configuration.fields}


def _indexing(indexed: Indexed | None) -> dict[str, Any] | None:
    if indexed is None:
        return None
    return {"seconds": round(indexed.seconds, 3), "documents": {str(k): n for k, n in indexed.counts.items()}}


def machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "n_cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    """Its name where the system tells, else its kind."""
    if sys.platform == "linux":
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - no path of ours
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
