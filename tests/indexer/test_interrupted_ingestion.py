"""Jobs that are stopped, cancelled, taken over, or at which workers die."""

from collections.abc import Sequence

import pytest

from app.domain import JobState, Outcome, OutcomeStatus
from app.errors import Conflict, DocumentNotFound
from indexer.encoding import Stopped
from tests.indexer.stand_ins import LEASE_S, WORKER, Bench


def test_a_job_is_finished_only_when_the_index_shows_everything(bench: Bench) -> None:
    job = bench.submit_documents({"id": "a", "text": "text"}, {"id": "b", "text": "text"})
    bench.process_next()
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED
    assert bench.index.n_documents_at_apply[-1] == 2


def test_what_a_dead_worker_stored_last_becomes_visible_with_the_next_claim(bench: Bench) -> None:
    """The first claim stores everything and dies before it tells the index."""
    job = bench.submit_documents({"id": "a", "text": "text"})
    claimed = bench.rows.claim_job("dead", lease_s=0)
    assert claimed is not None
    bench.rows.write_documents(
        bench.collection.key,
        ["a"],
        job_id=job.id,
        worker="dead",
        outcomes=[Outcome(0, "a", OutcomeStatus.NOT_FOUND)],
    )
    bench.process_next()
    assert bench.index.n_documents_at_apply == [0]
    assert bench.rows.job(job.id).state is JobState.SUCCEEDED


def test_stopping_stores_nothing_of_the_chunk_at_hand_and_the_next_claim_does_it(bench: Bench) -> None:
    job = bench.submit_documents({"id": "a", "text": "text"})
    claimed = bench.rows.claim_job(WORKER, lease_s=LEASE_S)
    assert claimed is not None
    with pytest.raises(Stopped):
        bench.ingestion.process(claimed, worker=WORKER, should_stop=lambda: True)
    assert bench.rows.outcomes(job.id) == []
    bench.rows.release_job(job.id, WORKER)
    bench.process_next()
    assert [o.status for o in bench.rows.outcomes(job.id)] == [OutcomeStatus.CREATED]


def test_a_cancelled_job_is_left_at_the_next_write(bench: Bench) -> None:
    job = bench.submit_documents({"id": "a", "text": "text"})
    claimed = bench.rows.claim_job(WORKER, lease_s=LEASE_S)
    assert claimed is not None
    bench.rows.cancel_job(job.id)
    with pytest.raises(Conflict):
        bench.ingestion.process(claimed, worker=WORKER)
    with pytest.raises(DocumentNotFound):
        bench.stored("a")


def test_after_a_claim_without_progress_inputs_are_stored_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is before a deadly input is safe when it strikes again, so that it is known which one it is."""
    job = bench.submit_documents(*({"id": str(i), "text": f"text {i}"} for i in range(5)))
    bench.rows.claim_job("dead", lease_s=0)
    encode = bench.embedder.encode_documents

    def die_at_3(texts: Sequence[str], **options: object) -> object:
        if "text 3" in texts:
            raise SystemExit
        return encode(texts)

    monkeypatch.setattr(bench.embedder, "encode_documents", die_at_3)
    with pytest.raises(SystemExit):
        bench.process_next()
    assert [o.ordinal for o in bench.rows.outcomes(job.id)] == [0, 1, 2]


def test_an_input_at_which_workers_died_three_times_is_set_aside(bench: Bench) -> None:
    job = bench.submit_documents({"id": "a", "text": "deadly"}, {"id": "b", "text": "good"})
    for _ in range(3):
        bench.rows.claim_job("dead", lease_s=0)
    bench.process_next()
    first, second = bench.rows.outcomes(job.id)
    assert (first.status, second.status) == (OutcomeStatus.REJECTED, OutcomeStatus.CREATED)
    assert "died 3 times" in (first.error or "")
