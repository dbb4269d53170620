"""How far a training is: a bar on a terminal, lines elsewhere."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from indexer.cli.printing import output
from indexer.training.callbacks import Show

LINE_EVERY_S = 10.0
"""Between lines where there is no terminal; evaluations are always shown."""


@contextmanager
def training_progress(title: str) -> Iterator[Show]:
    console = output()
    if not console.is_terminal:
        yield _lines(title)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, detail="")

        def show(line: dict[str, Any]) -> None:
            detail = _detail(line)
            metrics = _metrics(line)
            if metrics:
                bar.console.print(f"{title}: step {line['step']}, {metrics}", markup=False)
            if detail:
                bar.update(task, completed=line["step"], total=line["n_steps"], detail=detail)

        yield show


def _lines(title: str) -> Show:
    shown = 0.0

    def show(line: dict[str, Any]) -> None:
        nonlocal shown
        metrics = _metrics(line)
        said = metrics or _detail(line)
        if not said or not (metrics or time.monotonic() - shown >= LINE_EVERY_S):
            return
        shown = time.monotonic()
        output().print(f"{title}: step {line['step']} of {line['n_steps']}, {said}", markup=False)

    return show


def _detail(line: dict[str, Any]) -> str:
    """
    >>> _detail({"loss": 0.51234, "tokens_per_s": 2100, "left_s": 75})
    'loss 0.5123, 2,100 tokens/s, 0:01:15 left'
    """
    if "loss" not in line:
        return ""
    left = dt.timedelta(seconds=int(line["left_s"]))
    return f"loss {line['loss']:.4f}, {line['tokens_per_s']:,} tokens/s, {left} left"


def _metrics(line: dict[str, Any]) -> str:
    """
    >>> _metrics({"eval_f1": 0.5, "eval_loss": 1.25, "eval_runtime": 3.0})
    'f1 0.5000, loss 1.2500'
    """
    return ", ".join(
        f"{name.removeprefix('eval_')} {value:.4f}"
        for name, value in line.items()
        if name.startswith("eval_") and not name.endswith(("_runtime", "_per_second"))
    )
