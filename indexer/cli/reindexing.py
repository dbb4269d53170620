"""What `bifocal reindex` and `bifocal rollback` do: submit the job, and follow it to its end."""

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.domain import IndexSettings, Job, JobState
from app.engine.embedders import named, settings_of_second
from app.errors import JobFailed
from app.services.reindexing import Changes, begin_reindex
from app.settings import Settings
from indexer.cli.composition import Store, encoder_files, open_store, require_name
from indexer.cli.failures import INTERRUPTED
from indexer.cli.on_demand import WorkerOnDemand
from indexer.cli.printing import output

POLL_S = 0.05


def reindex(
    settings: Settings,
    name: str,
    *,
    max_tokens: int | None,
    overlap_tokens: int | None,
    index: IndexSettings | None,
    model: str | None,
    standby: str | None,
) -> int:
    """Gives the exit code."""
    if standby is not None:
        require_name(standby, of="a standby")
    files = encoder_files(settings)
    if model is not None:
        second = [encoder_files(settings_of_second(settings))] if settings.second_embedder else []
        files = named(model, {each.name: each for each in (files, *second)})
    with open_store(settings) as store:
        job = begin_reindex(
            store.rows,
            name,
            Changes(max_tokens, overlap_tokens, index),
            fingerprint=files.fingerprint,
            model=files.name,
            standby=standby,
        )
        return _follow(store, settings, job)


def roll_back(settings: Settings, name: str) -> int:
    """Gives the exit code."""
    with open_store(settings) as store:
        return _follow(store, settings, store.rows.begin_rollback(name))


def _follow(store: Store, settings: Settings, job: Job) -> int:
    """Until it has switched. Raises JobFailed."""
    console = output()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        with (
            WorkerOnDemand(store, settings) as on_demand,
            Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task("documents", total=job.n_inputs)
            while not (job := store.rows.job(job.id)).state.is_final:
                on_demand.check()
                bar.update(task, completed=job.n_done)
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        console.print(
            f"Not waiting any longer. The job {job.id} goes on with the next worker; `bifocal jobs cancel "
            f"{job.id}` ends it.",
            markup=False,
        )
        return INTERRUPTED
    if job.state is not JobState.SUCCEEDED:
        raise JobFailed(f"the job {job.id} is {job.state}: {job.error or 'somebody cancelled it'}")
    [standby] = [each.name for each in store.rows.collections() if each.standby_of == job.collection]
    console.print(
        f"Switched: {job.n_done} documents copied. The former {job.collection!r} is {standby!r} now: "
        f"`bifocal rollback {job.collection}` goes back to it, `bifocal collections delete {standby}` frees "
        "its space.",
        markup=False,
    )
    return 0
