"""Several threads and processes on one store."""

import multiprocessing
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.domain import JobInput, JobKind, JobState, Outcome, OutcomeStatus
from app.errors import Overloaded
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.writers import Writers
from tests.storage.building import encoded, inputs, make_collection
from tests.storage.consistency import assert_sound, assert_vectors_belong_to_texts

SPAWN = multiprocessing.get_context("spawn")
N_JOBS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def submit(path: Path, name: str) -> None:
    rows = SqliteRows(path)
    collection = rows.collection("books")
    for i in range(N_JOBS):
        bodies = [f"{name} {i} {ordinal}".encode() for ordinal in range(3)]
        rows.submit_job(
            collection.key, JobKind.DOCUMENTS, [JobInput(n, body) for n, body in enumerate(bodies)]
        )
    rows.close()


def work(path: Path, worker: str) -> None:
    """Do jobs until all are done; every input becomes a document."""
    rows = SqliteRows(path)
    while (
        any(not job.state.is_final for job in rows.jobs(limit=1000))
        or len(rows.jobs(limit=1000)) < 2 * N_JOBS
    ):
        claimed = rows.claim_job(worker, lease_s=60)
        if claimed is None:
            continue
        for job_input in rows.job_inputs(claimed.job.id, start=0, limit=10):
            text = job_input.body.decode()
            rows.write_documents(
                claimed.collection.key,
                [encoded(text, text), encoded("shared", text)],
                job_id=claimed.job.id,
                worker=worker,
                outcomes=[Outcome(job_input.ordinal, text, OutcomeStatus.CREATED)],
            )
        rows.finish_job(claimed.job.id, worker, JobState.SUCCEEDED)
    rows.close()


def test_two_processes_submit_while_two_others_work(path: Path) -> None:
    rows = SqliteRows(path)
    collection = make_collection(rows)
    processes = [
        SPAWN.Process(target=target, args=(path, name))
        for target, name in ((submit, "a"), (submit, "b"), (work, "v"), (work, "w"))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert Counter(job.state for job in rows.jobs(limit=1000)) == {JobState.SUCCEEDED: 2 * N_JOBS}
    assert rows.collection_stats(collection.key).n_documents == 2 * N_JOBS * 3 + 1
    assert len(rows.tombstones_after(collection.key, "documents", 0).keys) == 2 * N_JOBS * 3 - 1
    assert_vectors_belong_to_texts(rows, collection)
    rows.close()
    assert_sound(path)


def test_threads_submit_and_read_at_once(path: Path) -> None:
    rows = SqliteRows(path)
    collection = make_collection(rows)

    def submit_and_read(_: int) -> str:
        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(2))
        assert rows.job(job.id) == job
        assert rows.collections() == [collection]
        return job.id

    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(submit_and_read, range(64)))
    assert {job.id for job in rows.jobs(limit=1000)} == set(ids)
    rows.close()


def test_a_commit_of_another_process_changes_the_data_version(path: Path) -> None:
    rows = SqliteRows(path)
    make_collection(rows)
    before = rows.data_version()
    process = SPAWN.Process(target=submit, args=(path, "a"))
    process.start()
    process.join()
    assert rows.data_version() != before
    rows.close()


def test_closing_closes_every_file(path: Path) -> None:
    def n_open() -> int:
        folder = Path("/proc/self/fd")
        return sum(str(path) in str(link.readlink()) for link in folder.iterdir() if link.is_symlink())

    rows = SqliteRows(path)
    make_collection(rows)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: rows.collections(), range(20)))
    assert n_open() > 0
    rows.close()
    assert n_open() == 0


def hold_the_lock(path: Path, holding: "multiprocessing.synchronize.Event") -> None:
    with Writers(path, timeout_s=1).exclusively():
        holding.set()
        signal.pause()


def test_the_lock_of_a_killed_writer_is_free_and_that_of_a_living_one_is_not(path: Path) -> None:
    holding = SPAWN.Event()
    holder = SPAWN.Process(target=hold_the_lock, args=(path, holding))
    holder.start()
    assert holding.wait(60)
    writers = Writers(path, timeout_s=0.05)
    with pytest.raises(Overloaded, match="too long"), writers.exclusively():
        pass
    holder.kill()
    holder.join()
    with writers.exclusively():
        pass
    writers.close()
