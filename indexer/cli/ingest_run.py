"""Runs `bifocal ingest` to its end: a worker where there is none, progress, the closing report."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from app.domain import OutcomeStatus
from app.settings import Settings
from indexer.cli.composition import find_or_create_collection, open_store
from indexer.cli.failures import FAILED, INTERRUPTED
from indexer.cli.ingesting import FileIngest, Report, find_files
from indexer.cli.on_demand import WorkerOnDemand
from indexer.cli.printing import output
from indexer.reading import SUFFIXES

POLL_S = 0.05
PLAIN_LINE_EVERY_S = 5.0
MAX_SHOWN = 50
"""Errors, and warnings, printed at the end; the job's outcomes have all."""

Show = Callable[[Report], None]


def ingest(settings: Settings, paths: Sequence[str], *, collection_name: str) -> int:
    """Gives the exit code: 0, 1 when something was rejected, 130 when interrupted."""
    console = output()
    files, n_passed_over = find_files(paths, frozenset(SUFFIXES))
    if n_passed_over:
        console.print(f"{n_passed_over} files of other types are passed over.")
    began = time.monotonic()
    with open_store(settings) as store, WorkerOnDemand(store, settings) as on_demand:
        collection = find_or_create_collection(store.rows, collection_name, settings)
        run = FileIngest(store.rows, collection, files, settings=settings)
        is_complete = _follow(run, on_demand, console)
    print_report(console, run.report, seconds=time.monotonic() - began)
    if not is_complete:
        console.print("Interrupted. What is done stays; the same command goes on from here.")
        return INTERRUPTED
    return FAILED if run.report.errors else 0


def _follow(run: FileIngest, on_demand: WorkerOnDemand, console: Console) -> bool:
    """Until every file has its outcome; False when interrupted before."""
    try:
        with _sigterm_as_interrupt(), progress(console, n_bytes=run.n_bytes) as show:
            while not run.is_done:
                run.step()
                on_demand.check()
                show(run.report)
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        run.cancel()
    return not run.is_cancelled


@contextmanager
def progress(console: Console, *, n_bytes: int) -> Iterator[Show]:
    """A bar on a terminal, a line every few seconds elsewhere."""
    if not console.is_terminal:
        yield _plain_lines(console, n_bytes=n_bytes)
        return
    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]:.0f} passages/s"),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=max(1, n_bytes), rate=0.0)
        yield lambda report: bar.update(
            task, completed=report.n_bytes_done, rate=_rate(report, time.monotonic() - began)
        )
        bar.update(task)


def _plain_lines(console: Console, *, n_bytes: int) -> Show:
    began = last = time.monotonic()

    def show(report: Report) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PLAIN_LINE_EVERY_S or not report.n_bytes_done:
            return
        last = now
        share = report.n_bytes_done / max(1, n_bytes)
        left_s = (now - began) * (1 - share) / share
        console.print(f"{share:.0%}, {_rate(report, now - began):.0f} passages/s, about {left_s:.0f} s left")

    return show


def print_report(console: Console, report: Report, *, seconds: float) -> None:
    """Counts first, then what needs attention."""
    parts = [f"{report.counts[status]} {status.value}" for status in OutcomeStatus if status in report.counts]
    console.print(
        f"{', '.join(parts) or 'Nothing to do'}; {report.n_passages} new passages in {seconds:.1f} s "
        f"({_rate(report, seconds):.0f} passages/s)."
    )
    for title, messages in (("Warnings", report.warnings), ("Rejected", report.errors)):
        if messages:
            console.print(f"{title}:")
        for name, message in messages[:MAX_SHOWN]:
            console.print(f"  {name}: {message}", markup=False, soft_wrap=True)
        if len(messages) > MAX_SHOWN:
            console.print(f"  and {len(messages) - MAX_SHOWN} more")


def _rate(report: Report, seconds: float) -> float:
    return report.n_passages / max(seconds, 1e-9)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Both signals mean: stop in order."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
