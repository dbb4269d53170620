"""What a result file says about where its figures come from."""

import datetime as dt
import importlib.metadata
import json
import os
import platform
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "bifocal",
    "faiss-cpu",
    "fastapi",
    "numpy",
    "openvino",
    "sentence-transformers",
    "tantivy",
    "torch",
)


def environment() -> dict[str, Any]:
    return {
        "date": dt.date.today().isoformat(),
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "system": platform.system(),
            "load_average": round(os.getloadavg()[0], 1),
        },
        "versions": {
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            **{name: _version(name) for name in PACKAGES},
        },
    }


def write_result(name: str, figures: Mapping[str, Any]) -> Path:
    """benchmarks/results/NAME.json. The environment is of this moment, unless the figures bring it."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**environment(), **figures}, indent=1) + "\n", encoding="utf-8")
    return path


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
