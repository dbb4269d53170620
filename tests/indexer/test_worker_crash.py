"""Workers that die: kill -9, inputs that take the process with them, orderly stops."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.domain import Job, JobState, OutcomeStatus
from app.engine.watchdog import STUCK_EXIT_CODE
from tests.indexer.stand_ins import Bench, wait_until

ROOT = Path(__file__).parents[2]
LEASE_S = 600.0
"""No test waits for it: what a dead worker held is free at once."""
N_DOCUMENTS = 40
LONG = "words of a text that fill a chunk " * 1_000
"""A dozen of these is more than a chunk, so that a job of forty has several."""


@contextmanager
def worker_process(folder: Path, *, delay_s: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.indexer.worker_process", str(folder), str(LEASE_S), str(delay_s)],
        cwd=ROOT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def long_job(bench: Bench) -> Job:
    return bench.submit_documents(*({"id": str(i), "text": f"{i} {LONG}"} for i in range(N_DOCUMENTS)))


def assert_done_exactly_once(bench: Bench, job: Job) -> None:
    outcomes = bench.rows.outcomes(job.id)
    assert [o.ordinal for o in outcomes] == list(range(N_DOCUMENTS))
    assert {o.status for o in outcomes} == {OutcomeStatus.CREATED}
    assert bench.rows.collection_stats(bench.collection.key).n_documents == N_DOCUMENTS
    assert all(bench.stored(str(i)).text == f"{i} {LONG}" for i in range(N_DOCUMENTS))


def test_a_job_goes_on_exactly_where_a_killed_worker_left_it(bench: Bench) -> None:
    job = long_job(bench)
    n_seen = 0
    for _ in range(2):
        with worker_process(bench.settings.home, delay_s=0.3) as worker:
            wait_until(lambda: bench.rows.job(job.id).n_done > n_seen)  # noqa: B023 - called at once
            n_seen = bench.rows.job(job.id).n_done
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        assert 0 < n_seen < N_DOCUMENTS
    with worker_process(bench.settings.home):
        wait_until(lambda: bench.rows.job(job.id).state.is_final)
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED
    assert_done_exactly_once(bench, job)


def test_an_orderly_stop_gives_the_job_back_at_once(bench: Bench) -> None:
    job = long_job(bench)
    with worker_process(bench.settings.home, delay_s=0.3) as worker:
        wait_until(lambda: bench.rows.job(job.id).n_done > 0)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert bench.rows.job(job.id).state is JobState.QUEUED
    assert not bench.rows.worker_alive()
    with worker_process(bench.settings.home):
        wait_until(lambda: bench.rows.job(job.id).state.is_final)
    assert_done_exactly_once(bench, job)


@pytest.mark.parametrize(("word", "exit_code"), [("deadly", 9), ("endless", STUCK_EXIT_CODE)])
def test_an_input_that_ends_every_worker_is_set_aside_and_the_rest_is_done(
    bench: Bench, word: str, exit_code: int
) -> None:
    job = bench.submit_documents(
        {"id": "a", "text": "good"}, {"id": "b", "text": word}, {"id": "c", "text": "good"}
    )
    n_deaths = 0
    while not bench.rows.job(job.id).state.is_final:
        assert n_deaths < 10
        with worker_process(bench.settings.home) as worker:
            wait_until(lambda: worker.poll() is not None or bench.rows.job(job.id).state.is_final)
            n_deaths += worker.poll() == exit_code
    statuses = [o.status for o in bench.rows.outcomes(job.id)]
    assert statuses == [OutcomeStatus.CREATED, OutcomeStatus.REJECTED, OutcomeStatus.CREATED]
