"""A worker's lease when its holder is dead, and when that is not certain."""

import multiprocessing
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from app.domain import JobKind
from app.storage.sqlite import SqliteRows
from tests.storage.building import inputs, make_collection

SPAWN = multiprocessing.get_context("spawn")
LEASE_S = 600.0
PATIENCE_S = 60.0


def live(path: Path, ready: threading.Event) -> None:
    """A worker that claims a job and lives until it is killed."""
    rows = SqliteRows(path)
    assert rows.worker_heartbeat("first", lease_s=LEASE_S)
    assert rows.claim_job("first", lease_s=LEASE_S) is not None
    ready.set()
    signal.pause()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def rows(path: Path) -> Iterator[SqliteRows]:
    opened = SqliteRows(path)
    collection = make_collection(opened)
    opened.submit_job(collection.key, JobKind.DOCUMENTS, inputs(1))
    yield opened
    opened.close()


@pytest.fixture
def first(rows: SqliteRows, path: Path) -> Iterator[BaseProcess]:
    """A process that holds the lease and a job."""
    ready = SPAWN.Event()
    process = SPAWN.Process(target=live, args=(path, ready))
    process.start()
    assert ready.wait(PATIENCE_S)
    yield process
    process.kill()
    process.join()


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()


def test_lease_and_job_of_a_killed_worker_are_taken_over_at_once(
    first: BaseProcess, rows: SqliteRows
) -> None:
    kill(first)
    assert rows.worker_heartbeat("second", lease_s=LEASE_S)
    claimed = rows.claim_job("second", lease_s=LEASE_S)
    assert claimed is not None
    assert claimed.attempts == 2


def test_lease_of_a_living_worker_is_not_taken_over(first: BaseProcess, rows: SqliteRows) -> None:
    assert not rows.worker_heartbeat("second", lease_s=LEASE_S)
    assert rows.claim_job("second", lease_s=LEASE_S) is None
    kill(first)
    assert rows.worker_heartbeat("second", lease_s=LEASE_S)


def test_lease_of_a_suspended_worker_is_not_taken_over(first: BaseProcess, rows: SqliteRows) -> None:
    assert first.pid is not None
    os.kill(first.pid, signal.SIGSTOP)
    assert not rows.worker_heartbeat("second", lease_s=LEASE_S)


def test_lease_of_a_worker_that_never_held_the_lock_runs_out_first(rows: SqliteRows, path: Path) -> None:
    """It may live where locks of this machine do not reach."""
    rows.worker_heartbeat("second", lease_s=LEASE_S)
    rows.worker_release("second")
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO leases VALUES ('worker', 'elsewhere', ?)", (2**62,))
    connection.close()
    assert not rows.worker_heartbeat("second", lease_s=LEASE_S)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE leases SET leased_until = 0")
    connection.close()
    assert rows.worker_heartbeat("second", lease_s=LEASE_S)


def test_worker_without_a_lock_file_works_by_its_lease_alone(
    rows: SqliteRows, path: Path, open_rows: Callable[[], SqliteRows]
) -> None:
    path.with_name(path.name + "-worker").mkdir()  # cannot be opened as a file
    assert rows.worker_heartbeat("first", lease_s=LEASE_S)
    other = open_rows()
    rows.close()
    assert not other.worker_heartbeat("second", lease_s=LEASE_S)


def test_job_of_a_worker_that_gave_its_lease_back_in_a_failure_is_taken_over_at_once(
    rows: SqliteRows, open_rows: Callable[[], SqliteRows]
) -> None:
    rows.worker_heartbeat("first", lease_s=LEASE_S)
    rows.claim_job("first", lease_s=LEASE_S)
    rows.worker_release("first")
    other = open_rows()
    assert other.worker_heartbeat("second", lease_s=LEASE_S)
    assert other.claim_job("second", lease_s=LEASE_S) is not None


@pytest.fixture
def open_rows(path: Path) -> Iterator[Callable[[], SqliteRows]]:
    opened: list[SqliteRows] = []

    def open_again() -> SqliteRows:
        opened.append(SqliteRows(path))
        return opened[-1]

    yield open_again
    for each in opened:
        each.close()
