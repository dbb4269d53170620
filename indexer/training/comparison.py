"""The same task trained three times: nothing frozen, all but the last layers frozen, the encoder frozen."""

import dataclasses
import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from indexer.training.callbacks import Show
from indexer.training.request import TrainingRequest
from indexer.training.results import RESULTS, TrainingResult, machine
from indexer.training.running import train

PARTLY = "all-but-last-2"
COMPARISON = "freezing"
"""Name of the table's files."""
RATES = {"none": 1.0, "encoder": 10.0}
"""Learning rate of a mode against the one asked for: a head alone needs a much higher one."""
TABLE = ("freeze", "trainable parameters", "seconds", "peak memory, MiB", "metric", "validation", "test")

Progress = Callable[[str], AbstractContextManager[Show]]


def compare_freezing(request: TrainingRequest, progress: Progress) -> list[TrainingResult]:
    """Train into a folder per mode, each in a process of its own so that its memory is its own, and write the
    table beside them. The part mode is the request's own if it is one, else all-but-last-2.
    """
    part = request.freeze if request.freeze.startswith("all-but-last-") else PARTLY
    results = [_trained(_with_mode(request, mode), progress) for mode in ("none", part, "encoder")]
    write_table(results, request.output)
    return results


def table(results: Sequence[TrainingResult]) -> list[tuple[str, ...]]:
    return [
        (
            result.freeze,
            f"{result.n_trainable:,}",
            f"{result.seconds:.0f}",
            f"{result.peak_memory_bytes / 2**20:.0f}",
            result.metric,
            f"{result.validation[result.metric]:.4f}",
            f"{result.test[result.metric]:.4f}" if result.test else "",
        )
        for result in results
    ]


def write_table(results: Sequence[TrainingResult], folder: Path) -> None:
    found = {"machine": machine(), "modes": [dataclasses.asdict(result) for result in results]}
    (folder / f"{COMPARISON}.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    lines = [TABLE, tuple("---" for _ in TABLE), *table(results)]
    written = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    (folder / f"{COMPARISON}.md").write_text(written, encoding="utf-8")


def _with_mode(request: TrainingRequest, mode: str) -> TrainingRequest:
    return dataclasses.replace(
        request,
        freeze=mode,
        output=request.output / mode,
        learning_rate=request.learning_rate * RATES.get(mode, 1.0),
    )


def _trained(request: TrainingRequest, progress: Progress) -> TrainingResult:
    """A mode that was finished before is not trained again."""
    finished = request.output / RESULTS
    if not (request.resume and finished.is_file()):
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(max_workers=1, mp_context=spawning) as pool:
            pool.submit(_train_in_child, request, progress).result()
    found = json.loads(finished.read_bytes())
    names = [field.name for field in dataclasses.fields(TrainingResult)]
    return TrainingResult(**{name: found[name] for name in names})


def _train_in_child(request: TrainingRequest, progress: Progress) -> None:
    with progress(f"freeze {request.freeze}") as show:
        train(request, show)
