"""A writer killed at any moment loses nothing acknowledged and leaves nothing half-done."""

import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from app.domain import JobKind, JobState, Outcome, OutcomeStatus
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, inputs, make_collection
from tests.storage.consistency import assert_sound, assert_vectors_belong_to_texts

SPAWN = multiprocessing.get_context("spawn")
N_DOCUMENTS = 20
KILL_WITHIN_S = 0.3


def write_for_ever(path: Path, acknowledged: Connection) -> None:
    """Each write gives all documents the next version; each acknowledgement is sent."""
    rows = SqliteRows(path)
    collection = make_collection(rows)
    while True:
        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(5))
        acknowledged.send(("job", job.id))
        claimed = rows.claim_job("w", lease_s=0)
        assert claimed is not None
        for ordinal in range(claimed.n_done, 5):
            version = time.monotonic_ns()
            changes = [
                encoded(str(i), f"{version} {i} " + "x" * 3000, n_passages=5) for i in range(N_DOCUMENTS)
            ]
            outcome = Outcome(ordinal, str(version), OutcomeStatus.UPDATED)
            rows.write_documents(
                collection.key, changes, job_id=claimed.job.id, worker="w", outcomes=[outcome]
            )
            acknowledged.send(("version", str(version)))
        rows.finish_job(claimed.job.id, "w", JobState.SUCCEEDED)


@pytest.mark.parametrize("round_", range(6))
def test_a_killed_writer_loses_nothing_acknowledged(tmp_path: Path, round_: int) -> None:
    path = tmp_path / "store.db"
    for _ in range(2):
        jobs, versions = kill_a_writer(path, after_s=random.Random(round_).uniform(0, KILL_WITHIN_S))
        assert_nothing_lost(path, jobs, versions)


def kill_a_writer(path: Path, *, after_s: float) -> tuple[list[str], list[str]]:
    receiver, sender = SPAWN.Pipe(duplex=False)
    writer = SPAWN.Process(target=write_for_ever, args=(path, sender))
    writer.start()
    sender.close()
    received: list[tuple[str, str]] = [receiver.recv()]
    time.sleep(after_s)
    writer.kill()
    writer.join()
    while True:
        try:
            received.append(receiver.recv())
        except EOFError:
            break
    receiver.close()
    return (
        [name for kind, name in received if kind == "job"],
        [name for kind, name in received if kind == "version"],
    )


def assert_nothing_lost(path: Path, jobs: list[str], versions: list[str]) -> None:
    rows = SqliteRows(path)
    collection = rows.collection("books")
    stored = [rows.document(collection.key, head.id) for head in rows.documents(collection.key)]
    stored_versions = {each.document.text.split()[0] for each in stored}
    outcomes = [o.document_id for job in rows.jobs(limit=1000) for o in rows.outcomes(job.id)]
    assert set(jobs) <= {job.id for job in rows.jobs(limit=1000)}
    assert set(versions) <= set(outcomes)
    assert len(stored_versions) <= 1
    assert stored_versions == set(sorted(map(str, outcomes), key=int)[-1:])
    assert_vectors_belong_to_texts(rows, collection)
    rows.close()
    assert_sound(path)
