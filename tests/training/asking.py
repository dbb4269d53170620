"""Requests for short trainings of tiny bases."""

from pathlib import Path
from typing import Any

from indexer.training.request import TrainingRequest


def request(task: str, base: Path, data: Path, output: Path, **options: Any) -> TrainingRequest:
    given: dict[str, Any] = {
        "task": task,
        "base": str(base),
        "paths": [data],
        "output": output,
        "max_steps": 2,
        "batch_tokens": 256,
        "learning_rate": 5e-3,
        "precision": "fp32",
    }
    return TrainingRequest(**{**given, **options})
