"""Part of `rows_contract`: jobs and leases. A lease of 0 s has expired when it is given."""

import datetime as dt
import time
from collections.abc import Callable, Iterator

import pytest

from app.domain import Collection, Job, JobInput, JobKind, JobState, Outcome, OutcomeStatus
from app.errors import (
    BadCursor,
    CollectionNotFound,
    Conflict,
    JobFinished,
    JobNotFound,
)
from app.storage.rows import Rows
from tests.storage.building import encoded, inputs, make_collection, outcome


def submit(rows: Rows, collection: Collection, n_inputs: int = 1) -> Job:
    return rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(n_inputs))


def finished(rows: Rows, collection: Collection) -> Job:
    job = submit(rows, collection)
    rows.claim_job("w", lease_s=60)
    rows.finish_job(job.id, "w", JobState.SUCCEEDED)
    return rows.job(job.id)


class JobsContract:
    def test_jobs_are_counted_by_state_while_their_collection_lives(
        self, rows: Rows, collection: Collection
    ) -> None:
        assert rows.job_counts() == {}
        finished(rows, collection)
        submit(rows, collection)
        submit(rows, collection)
        assert rows.job_counts() == {JobState.SUCCEEDED: 1, JobState.QUEUED: 2}
        rows.drop_collection(collection.name)
        assert rows.job_counts() == {}

    def test_a_submitted_job_is_queued_and_durable(
        self, rows: Rows, collection: Collection, open_rows: Callable[[], Rows]
    ) -> None:
        job = rows.submit_job(collection.key, JobKind.FILES, iter(inputs(3)))
        assert (job.kind, job.collection, job.state) == (JobKind.FILES, collection.name, JobState.QUEUED)
        assert (job.n_inputs, job.n_done, job.counts) == (3, 0, {})
        assert (job.started_at, job.finished_at, job.error) == (None, None, None)
        assert open_rows().job(job.id) == job

    def test_inputs_come_back_from_an_ordinal_on(self, rows: Rows, collection: Collection) -> None:
        given = [JobInput(i, bytes([i, 0, 255]), f"fil\u00e9 {i}", "text/plain") for i in range(5)]
        job = rows.submit_job(collection.key, JobKind.FILES, given)
        assert rows.job_inputs(job.id, start=2, limit=2) == given[2:4]
        assert rows.job_inputs(job.id, start=5, limit=2) == []

    def test_job_ids_are_long_and_differ(self, rows: Rows, collection: Collection) -> None:
        ids = {submit(rows, collection).id for _ in range(20)}
        assert len(ids) == 20
        assert all(len(job_id) >= 32 for job_id in ids)

    def test_a_stream_that_breaks_leaves_nothing(self, rows: Rows, collection: Collection) -> None:
        def stream() -> Iterator[JobInput]:
            yield from inputs(3)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            rows.submit_job(collection.key, JobKind.DOCUMENTS, stream())
        assert rows.jobs() == []
        job = submit(rows, collection, 1)
        assert len(rows.job_inputs(job.id, start=0, limit=10)) == 1

    def test_others_write_while_a_stream_arrives(self, rows: Rows, collection: Collection) -> None:
        def stream() -> Iterator[JobInput]:
            yield inputs(2)[0]
            submit(rows, collection, 5)
            yield inputs(2)[1]

        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, stream())
        assert len(rows.job_inputs(job.id, start=0, limit=10)) == 2
        assert [j.n_inputs for j in rows.jobs()] == [2, 5]

    def test_inputs_out_of_order_are_refused(self, rows: Rows, collection: Collection) -> None:
        with pytest.raises(ValueError, match="input 1 given where 0"):
            rows.submit_job(collection.key, JobKind.DOCUMENTS, reversed(inputs(2)))

    def test_a_file_name_that_is_no_unicode_is_kept_readably(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = rows.submit_job(collection.key, JobKind.FILES, [JobInput(0, b"", "caf\udce9.txt")])
        assert rows.job_inputs(job.id, start=0, limit=1)[0].name == r"caf\udce9.txt"

    def test_a_job_for_a_dropped_collection_is_refused(self, rows: Rows, collection: Collection) -> None:
        rows.drop_collection(collection.name)
        with pytest.raises(CollectionNotFound):
            submit(rows, collection)

    def test_jobs_are_claimed_first_in_first_out(self, rows: Rows, collection: Collection) -> None:
        submitted = [submit(rows, collection).id for _ in range(3)]
        claimed = [rows.claim_job("w", lease_s=60) for _ in range(4)]
        assert [c and c.job.id for c in claimed] == [*submitted, None]

    def test_a_claimed_job_runs_and_names_its_collection(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection)
        claimed = rows.claim_job("w", lease_s=60)
        assert claimed is not None
        assert claimed.job == rows.job(job.id)
        assert claimed.job.state is JobState.RUNNING
        assert claimed.job.started_at is not None
        assert (claimed.collection, claimed.n_done, claimed.attempts) == (collection, 0, 1)

    def test_a_job_under_an_expired_lease_is_taken_over_where_it_stopped(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = submit(rows, collection, 3)
        rows.claim_job("dead", lease_s=0)
        rows.write_documents(collection.key, ["a"], job_id=job.id, worker="dead", outcomes=[outcome(0)])
        taken = rows.claim_job("alive", lease_s=60)
        assert taken is not None
        assert (taken.job.id, taken.n_done) == (job.id, 1)
        with pytest.raises(Conflict, match="dead"):
            rows.write_documents(collection.key, ["a"], job_id=job.id, worker="dead", outcomes=[])
        with pytest.raises(Conflict, match="dead"):
            rows.finish_job(job.id, "dead", JobState.FAILED)
        assert not rows.renew_lease(job.id, "dead", lease_s=60)

    def test_a_renewed_lease_is_not_taken_over(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection)
        rows.claim_job("w", lease_s=0)
        assert rows.renew_lease(job.id, "w", lease_s=60)
        assert rows.claim_job("other", lease_s=60) is None

    def test_a_lease_expires_by_itself(self, rows: Rows, collection: Collection) -> None:
        submit(rows, collection)
        rows.claim_job("w", lease_s=0.05)
        time.sleep(0.1)
        assert rows.claim_job("other", lease_s=60) is not None

    def test_claims_without_progress_are_counted(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection, 2)
        attempts = [rows.claim_job("w", lease_s=0) for _ in range(3)]
        assert [claimed and claimed.attempts for claimed in attempts] == [1, 2, 3]
        rows.write_documents(collection.key, [], job_id=job.id, worker="w", outcomes=[outcome(0)])
        again = rows.claim_job("w", lease_s=60)
        assert again is not None
        assert again.attempts == 1

    def test_a_released_job_is_next_and_its_claim_does_not_count(
        self, rows: Rows, collection: Collection
    ) -> None:
        first, _ = submit(rows, collection), submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        rows.release_job(first.id, "other")
        assert rows.job(first.id).state is JobState.RUNNING
        rows.release_job(first.id, "w")
        again = rows.claim_job("other", lease_s=60)
        assert again is not None
        assert (again.job.id, again.attempts) == (first.id, 1)

    def test_changes_and_outcomes_are_written_together_or_not_at_all(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = submit(rows, collection, 1)
        rows.claim_job("w", lease_s=60)
        with pytest.raises(ValueError, match="outcome 5 given where 0"):
            rows.write_documents(
                collection.key, [encoded("a")], job_id=job.id, worker="w", outcomes=[outcome(5)]
            )
        assert rows.documents(collection.key) == []
        assert rows.outcomes(job.id) == []

    def test_nothing_is_written_into_another_collection_than_the_jobs(
        self, rows: Rows, collection: Collection
    ) -> None:
        other = make_collection(rows, "other")
        job = submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        with pytest.raises(ValueError, match="collection"):
            rows.write_documents(other.key, [encoded("a")], job_id=job.id, worker="w", outcomes=[])
        assert rows.documents(other.key) == []

    def test_outcomes_come_back_as_given_by_ordinal(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection, 3)
        rows.claim_job("w", lease_s=60)
        given = [
            Outcome(0, "a", OutcomeStatus.CREATED, n_documents=2, n_passages=3, n_tokens=4, warnings=("w",)),
            Outcome(1, None, OutcomeStatus.REJECTED, n_documents=0, error="blank"),
            Outcome(2, "b", OutcomeStatus.CREATED),
        ]
        rows.write_documents(collection.key, [], job_id=job.id, worker="w", outcomes=given[:2])
        rows.write_documents(collection.key, [], job_id=job.id, worker="w", outcomes=given[2:])
        assert rows.outcomes(job.id) == given
        assert rows.outcomes(job.id, after=0, limit=1) == given[1:2]
        progressed = rows.job(job.id)
        assert progressed.n_done == 3
        assert progressed.counts == {OutcomeStatus.CREATED: 2, OutcomeStatus.REJECTED: 1}

    def test_an_outcome_about_a_lone_surrogate_can_be_stored(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        rejected = Outcome(0, "\ud800", OutcomeStatus.REJECTED, error="id \ud800", warnings=("\ud800",))
        rows.write_documents(collection.key, [], job_id=job.id, worker="w", outcomes=[rejected])
        [stored] = rows.outcomes(job.id)
        assert (stored.document_id, stored.error, stored.warnings) == (r"\ud800", r"id \ud800", (r"\ud800",))

    def test_a_finished_job_keeps_outcomes_and_drops_inputs(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        rows.write_documents(collection.key, [], job_id=job.id, worker="w", outcomes=[outcome(0)])
        rows.finish_job(job.id, "w", JobState.FAILED, error="no model")
        stored = rows.job(job.id)
        assert (stored.state, stored.error) == (JobState.FAILED, "no model")
        assert stored.finished_at is not None
        assert rows.job_inputs(job.id, start=0, limit=10) == []
        assert rows.outcomes(job.id) == [outcome(0)]
        assert not rows.renew_lease(job.id, "w", lease_s=60)
        assert rows.claim_job("w", lease_s=60) is None

    def test_a_job_is_only_finished_in_a_final_state(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        with pytest.raises(ValueError, match="running"):
            rows.finish_job(job.id, "w", JobState.RUNNING)

    def test_a_cancelled_queued_job_is_never_claimed(self, rows: Rows, collection: Collection) -> None:
        job = submit(rows, collection)
        assert rows.cancel_job(job.id).state is JobState.CANCELLED
        assert rows.claim_job("w", lease_s=60) is None
        assert rows.job_inputs(job.id, start=0, limit=1) == []

    def test_cancelling_a_running_job_stops_its_next_write_and_keeps_the_ones_before(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = submit(rows, collection, 2)
        rows.claim_job("w", lease_s=60)
        rows.write_documents(collection.key, [encoded("a")], job_id=job.id, worker="w", outcomes=[outcome(0)])
        rows.cancel_job(job.id)
        assert not rows.renew_lease(job.id, "w", lease_s=60)
        with pytest.raises(Conflict):
            rows.write_documents(
                collection.key, [encoded("b")], job_id=job.id, worker="w", outcomes=[outcome(1)]
            )
        assert [stored.id for stored in rows.documents(collection.key)] == ["a"]
        assert rows.job(job.id).n_done == 1

    def test_a_final_job_cannot_be_cancelled(self, rows: Rows, collection: Collection) -> None:
        job = finished(rows, collection)
        with pytest.raises(JobFinished, match="succeeded"):
            rows.cancel_job(job.id)

    def test_dropping_a_collection_stops_its_jobs(self, rows: Rows, collection: Collection) -> None:
        running, _ = submit(rows, collection), submit(rows, collection)
        rows.claim_job("w", lease_s=0)
        rows.drop_collection(collection.name)
        assert not rows.renew_lease(running.id, "w", lease_s=60)
        assert rows.claim_job("w", lease_s=60) is None
        assert rows.n_unfinished_jobs() == 0
        with pytest.raises(Conflict):
            rows.write_documents(collection.key, ["a"], job_id=running.id, worker="w", outcomes=[])

    def test_an_unknown_job_is_not_found(self, rows: Rows) -> None:
        for ask in (rows.job, rows.outcomes, rows.cancel_job):
            with pytest.raises(JobNotFound, match="nowhere"):
                ask("nowhere")

    def test_jobs_are_listed_newest_first_and_paged(self, rows: Rows, collection: Collection) -> None:
        submitted = [submit(rows, collection).id for _ in range(5)]
        listed: list[str] = []
        while page := rows.jobs(after=listed[-1] if listed else None, limit=2):
            listed += [job.id for job in page]
        assert listed == submitted[::-1]
        with pytest.raises(BadCursor):
            rows.jobs(after="nowhere")

    def test_jobs_are_listed_by_state(self, rows: Rows, collection: Collection) -> None:
        done, waiting = finished(rows, collection), submit(rows, collection)
        assert [job.id for job in rows.jobs(state=JobState.SUCCEEDED)] == [done.id]
        assert [job.id for job in rows.jobs(state=JobState.QUEUED)] == [waiting.id]
        assert rows.jobs(state=JobState.RUNNING) == []

    def test_queued_and_running_jobs_are_unfinished(self, rows: Rows, collection: Collection) -> None:
        finished(rows, collection)
        submit(rows, collection)
        submit(rows, collection)
        rows.claim_job("w", lease_s=60)
        assert rows.n_unfinished_jobs() == 2

    def test_pruning_forgets_final_jobs_finished_before_a_moment(
        self, rows: Rows, collection: Collection
    ) -> None:
        old, recent, waiting = (
            finished(rows, collection),
            finished(rows, collection),
            submit(rows, collection),
        )
        assert recent.finished_at is not None
        assert rows.prune_jobs(finished_before=recent.finished_at) == 1
        assert [job.id for job in rows.jobs()] == [waiting.id, recent.id]
        assert rows.prune_jobs(finished_before=dt.datetime.now(dt.UTC), limit=0) == 0
        with pytest.raises(JobNotFound):
            rows.outcomes(old.id)

    def test_one_worker_holds_the_lease(self, rows: Rows, open_rows: Callable[[], Rows]) -> None:
        other = open_rows()
        assert not rows.worker_alive()
        assert rows.worker_heartbeat("a", lease_s=60)
        assert rows.worker_heartbeat("a", lease_s=60)
        assert not other.worker_heartbeat("b", lease_s=60)
        assert other.worker_alive()

    def test_a_released_or_expired_worker_lease_is_free(self, rows: Rows) -> None:
        rows.worker_heartbeat("a", lease_s=60)
        rows.worker_release("b")
        assert rows.worker_alive()
        rows.worker_release("a")
        assert not rows.worker_alive()
        assert rows.worker_heartbeat("b", lease_s=0)
        assert not rows.worker_alive()
        assert rows.worker_heartbeat("c", lease_s=60)
