"""What a training gave, and the files that say so."""

import dataclasses
import datetime as dt
import json
import os
import platform
import resource
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from indexer.training.request import Metrics

RESULTS = "results.json"
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    task: str
    base: str
    freeze: str
    metric: str
    """Name of the metric that chose the checkpoint."""
    validation: Metrics
    """Of the chosen checkpoint."""
    test: Metrics
    """Of the weights as they are saved, in float32; empty without a test split."""
    before: Metrics = field(default_factory=dict)
    """pretraining: the validation's, without any training."""
    n_parameters: int
    n_trainable: int
    n_steps: int
    n_tokens: int
    """Trained on since the start or the last resumption, padding included."""
    seconds: float
    """Of training, without reading and the last measurements; since the last resumption."""
    peak_memory_bytes: int
    """Of the process."""
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()


def write_results(result: TrainingResult, request: Any, folder: Path) -> None:
    found = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
        "request": dataclasses.asdict(request),
        **dataclasses.asdict(result),
    }
    written = json.dumps(found, indent=2, default=str, ensure_ascii=False)
    (folder / RESULTS).write_text(written + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
    }


def peak_memory_bytes() -> int:
    """The most this process had in memory at a time."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
