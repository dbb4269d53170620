import datetime as dt
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app.domain import Collection, Job, JobState, OutcomeStatus
from app.errors import JobNotFound, Overloaded, StorageDamaged
from app.storage.sqlite import SqliteRows
from indexer.heartbeat import Heartbeat
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from indexer.maintenance import Maintenance
from indexer.worker import Worker
from tests.indexer.stand_ins import Bench, read_plain_text, wait_until, working


def state(bench: Bench, job: Job) -> JobState:
    return bench.rows.job(job.id).state


def submit(bench: Bench, *texts: str) -> Job:
    return bench.submit_documents(*({"id": text, "text": text} for text in texts))


def wait_final(bench: Bench, *jobs: Job) -> None:
    wait_until(lambda: all(state(bench, job).is_final for job in jobs))


class Gate:
    """Holds the encoder until opened."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        encode = bench.embedder.encode_documents

        def held(texts: Sequence[str], **options: object) -> object:
            self.reached.set()
            assert self.opened.wait(30)
            return encode(texts)

        monkeypatch.setattr(bench.embedder, "encode_documents", held)


def test_jobs_are_worked_off_in_the_order_in_which_they_came(bench: Bench) -> None:
    jobs = [submit(bench, f"text {i}") for i in range(5)]
    with working(bench):
        wait_final(bench, *jobs)
    finished = [bench.rows.job(job.id).finished_at for job in jobs]
    assert finished == sorted(finished, key=str)


def test_a_job_that_comes_while_the_worker_is_idle_is_done(bench: Bench) -> None:
    with working(bench):
        wait_until(bench.rows.worker_alive)
        job = submit(bench, "late")
        wait_final(bench, job)
    assert state(bench, job) is JobState.SUCCEEDED


def test_a_cancelled_job_stops_and_the_next_one_is_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(bench, monkeypatch)
    first, second = submit(bench, "first"), submit(bench, "second")
    with working(bench):
        assert gate.reached.wait(30)
        bench.rows.cancel_job(first.id)
        gate.opened.set()
        wait_final(bench, second)
    assert (state(bench, first), state(bench, second)) == (JobState.CANCELLED, JobState.SUCCEEDED)
    assert bench.rows.outcomes(first.id) == []


def test_a_collection_dropped_under_a_running_job_does_not_stop_the_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(bench, monkeypatch)
    submit(bench, "first")
    with working(bench):
        assert gate.reached.wait(30)
        bench.rows.drop_collection("papers")
        gate.opened.set()
        bench.collection = bench.create_collection("papers")
        job = submit(bench, "second")
        wait_final(bench, job)
    assert state(bench, job) is JobState.SUCCEEDED


def test_a_fault_in_one_job_fails_it_without_a_traceback_and_the_next_is_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encode = bench.embedder.encode_documents

    def fault(texts: Sequence[str], **options: object) -> object:
        if "first" in texts:
            raise ZeroDivisionError("secret detail")
        return encode(texts)

    monkeypatch.setattr(bench.embedder, "encode_documents", fault)
    first, second = submit(bench, "first"), submit(bench, "second")
    with working(bench):
        wait_final(bench, first, second)
    assert (state(bench, first), state(bench, second)) == (JobState.FAILED, JobState.SUCCEEDED)
    error = bench.rows.job(first.id).error
    assert error == "unexpected failure in the worker (ZeroDivisionError); its log says more"
    assert any(record.exc_info for record in caplog.records)


def test_a_job_for_a_collection_of_another_model_fails_and_says_the_way_out(bench: Bench) -> None:
    bench.collection = bench.create_collection("other", fingerprint="another-model")
    job = submit(bench, "text")
    with working(bench):
        wait_final(bench, job)
    assert state(bench, job) is JobState.FAILED
    assert "re-index it" in (bench.rows.job(job.id).error or "")


def test_a_full_disk_loses_no_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path)
    text = " ".join(f"word{i}" for i in range(20_000))
    job = bench.submit_documents({"id": "a", "text": text})
    full = SqliteRows(tmp_path / "bifocal.db", max_size_bytes=(tmp_path / "bifocal.db").stat().st_size)
    ingestion = Ingestion(full, bench.index, bench.encoder, InputReader(bench.settings, read_plain_text))
    with (
        caplog.at_level(logging.ERROR),
        working(bench, Worker(full, bench.index, ingestion, settings=bench.settings)),
    ):
        wait_until(lambda: "no job is lost" in caplog.text, timeout_s=60)
    assert state(bench, job) is JobState.QUEUED
    with working(bench):
        wait_final(bench, job)
    assert [o.status for o in bench.rows.outcomes(job.id)] == [OutcomeStatus.CREATED]
    full.close()
    bench.close()


def test_a_second_worker_stands_by_and_takes_over(bench: Bench) -> None:
    bench.rows.worker_heartbeat("first", lease_s=60)
    job = submit(bench, "text")
    with working(bench, Worker(bench.rows, bench.index, bench.ingestion, settings=bench.settings)):
        wait_until(lambda: not bench.rows.worker_heartbeat("third", lease_s=60))
        assert state(bench, job) is JobState.QUEUED
        bench.rows.worker_release("first")
        wait_final(bench, job)
    assert state(bench, job) is JobState.SUCCEEDED


def test_a_worker_that_stops_gives_its_lease_back(bench: Bench) -> None:
    with working(bench):
        wait_until(bench.rows.worker_alive)
    assert not bench.rows.worker_alive()


def test_a_long_job_keeps_its_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model takes many times longer than a lease lasts, and still nobody takes the job over."""
    bench = Bench(tmp_path, lease_s=0.2)
    gate = Gate(bench, monkeypatch)
    job = submit(bench, "text")
    with working(bench):
        assert gate.reached.wait(30)
        for _ in range(10):
            threading.Event().wait(0.1)
            assert bench.rows.claim_job("thief", lease_s=60) is None
            assert not bench.rows.worker_heartbeat("thief", lease_s=60)
        gate.opened.set()
        wait_final(bench, job)
    assert state(bench, job) is JobState.SUCCEEDED
    bench.close()


def test_maintenance_removes_what_is_left_of_dropped_collections(bench: Bench) -> None:
    key = bench.collection.key
    bench.rows.drop_collection("papers")
    Maintenance(bench.rows, bench.index).round()
    assert bench.index.dropped == [key]


def test_maintenance_sweeps_left_over_files_once(bench: Bench) -> None:
    maintenance = Maintenance(bench.rows, bench.index)
    maintenance.round()
    maintenance.round()
    assert bench.index.n_sweeps == 1


def test_maintenance_looks_at_collections_only_after_a_commit(bench: Bench) -> None:
    maintenance = Maintenance(bench.rows, bench.index)
    maintenance.round()
    maintenance.round()
    assert bench.index.maintained == ["papers"]
    submit(bench, "text")
    maintenance.round()
    assert bench.index.maintained == ["papers", "papers"]


def test_maintenance_forgets_old_jobs_with_their_outcomes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(bench, "text")
    bench.process_next()
    Maintenance(bench.rows, bench.index).round()
    assert state(bench, job) is JobState.SUCCEEDED
    monkeypatch.setattr("indexer.maintenance.JOBS_KEPT", dt.timedelta(0))
    Maintenance(bench.rows, bench.index).round()
    with pytest.raises(JobNotFound):
        bench.rows.job(job.id)


def test_maintenance_forgets_all_old_jobs_in_one_round(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(120):  # more than the rows forget at a time
        bench.rows.cancel_job(submit(bench, "text").id)
    monkeypatch.setattr("indexer.maintenance.JOBS_KEPT", dt.timedelta(0))
    Maintenance(bench.rows, bench.index).round()
    assert bench.rows.jobs() == []


def test_maintenance_in_one_collection_that_fails_does_not_keep_it_from_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.create_collection("a damaged one")
    maintain = bench.index.maintain

    def fail(collection: Collection, **options: object) -> bool:
        if collection.name == "a damaged one":
            raise StorageDamaged("a file is not what it should be")
        return maintain(collection)

    monkeypatch.setattr(bench.index, "maintain", fail)
    Maintenance(bench.rows, bench.index).round()
    assert bench.index.maintained == ["papers"]


def test_a_rebuild_is_interrupted_when_the_worker_stops(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = threading.Event()

    def endless(_: Collection, *, progress: Callable[[str, float], None]) -> bool:
        began.set()
        while True:
            progress("training", 0.5)

    monkeypatch.setattr(bench.index, "maintain", endless)
    with working(bench):
        assert began.wait(30)
    assert not bench.rows.worker_alive()


def test_a_worker_that_another_one_replaced_stops_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was silent for longer than its lease, as a suspended process is."""
    bench = Bench(tmp_path, lease_s=0.2)
    worker = Worker(bench.rows, bench.index, bench.ingestion, settings=bench.settings)
    renew = bench.rows.worker_heartbeat

    def silent(name: str, *, lease_s: float) -> bool:
        return renew(name, lease_s=lease_s) if name != worker.name else not bench.rows.worker_alive()

    results = []
    thread = threading.Thread(target=lambda: results.append(worker.run(threading.Event())))
    thread.start()
    wait_until(bench.rows.worker_alive)
    monkeypatch.setattr(bench.rows, "worker_heartbeat", silent)
    wait_until(lambda: renew("another", lease_s=60))
    thread.join(30)
    assert results == [False]
    assert not renew("a third", lease_s=60)
    bench.close()


class HeldRows(SqliteRows):
    """A store that others have held for too long at the first beat."""

    n_beats = 0

    def worker_heartbeat(self, worker: str, *, lease_s: float) -> bool:
        self.n_beats += 1
        if self.n_beats == 1:
            raise Overloaded("other writers have held the file for too long; try again")
        return super().worker_heartbeat(worker, lease_s=lease_s)


def test_a_lease_is_renewed_again_after_a_beat_that_found_the_store_held_by_others(tmp_path: Path) -> None:
    rows = HeldRows(tmp_path / "bifocal.db")
    with Heartbeat(rows, "worker", lease_s=0.2).beating():
        wait_until(rows.worker_alive)
    rows.close()
