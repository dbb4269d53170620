"""Part of `rows_contract`: jobs with a request and a result."""

import datetime as dt
from collections.abc import Callable

import pytest

from app.domain import Collection, Job, JobKind, JobState
from app.errors import Conflict, JobNotFound
from app.storage.rows import JobReport, Rows
from tests.storage.building import inputs, make_collection

REQUEST = '{"configurations": []}'


def submit_evaluation(rows: Rows, collection: Collection, n_inputs: int = 1) -> Job:
    return rows.submit_job(collection.key, JobKind.EVALUATION, inputs(n_inputs), request=REQUEST)


def claim(rows: Rows) -> None:
    assert rows.claim_job("w", lease_s=60) is not None


class ReportsContract:
    def test_a_result_is_durable_and_stands_beside_its_request(
        self, rows: Rows, collection: Collection, open_rows: Callable[[], Rows]
    ) -> None:
        job = submit_evaluation(rows, collection)
        assert rows.job_report(job.id) == JobReport(REQUEST, None)
        claim(rows)
        rows.finish_job(job.id, "w", JobState.SUCCEEDED, result='{"n": 1}')
        assert open_rows().job_report(job.id) == JobReport(REQUEST, '{"n": 1}')

    def test_a_job_without_a_request_has_no_report_and_takes_no_result(
        self, rows: Rows, collection: Collection
    ) -> None:
        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(1))
        claim(rows)
        with pytest.raises(JobNotFound, match=job.id):
            rows.job_report(job.id)
        with pytest.raises(ValueError, match="without a request"):
            rows.finish_job(job.id, "w", JobState.SUCCEEDED, result="{}")
        assert rows.job(job.id).state is JobState.RUNNING

    def test_progress_is_seen_by_others(self, rows: Rows, collection: Collection) -> None:
        job = submit_evaluation(rows, collection, 3)
        claim(rows)
        rows.record_progress(job.id, "w", 2)
        assert rows.job(job.id).n_done == 2
        with pytest.raises(ValueError, match="4 of 3"):
            rows.record_progress(job.id, "w", 4)

    def test_whoever_lost_the_lease_cannot_record_progress(self, rows: Rows, collection: Collection) -> None:
        job = submit_evaluation(rows, collection)
        claim(rows)
        rows.cancel_job(job.id)
        with pytest.raises(Conflict):
            rows.record_progress(job.id, "w", 1)

    def test_a_report_survives_pruning(self, rows: Rows, collection: Collection) -> None:
        kept = submit_evaluation(rows, collection)
        claim(rows)
        rows.finish_job(kept.id, "w", JobState.SUCCEEDED, result="{}")
        pruned = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(1))
        rows.cancel_job(pruned.id)
        assert rows.prune_jobs(finished_before=dt.datetime.now(dt.UTC) + dt.timedelta(days=1)) == 1
        assert [job.id for job in rows.jobs()] == [kept.id]

    def test_a_forgotten_job_is_gone_and_its_worker_stops(self, rows: Rows, collection: Collection) -> None:
        job = submit_evaluation(rows, collection)
        claim(rows)
        rows.forget_job(job.id)
        assert not rows.renew_lease(job.id, "w", lease_s=60)
        for ask in (rows.job, rows.job_report, rows.forget_job):
            with pytest.raises(JobNotFound, match=job.id):
                ask(job.id)

    def test_a_report_is_gone_with_its_collection(self, rows: Rows, collection: Collection) -> None:
        job = submit_evaluation(rows, collection)
        rows.drop_collection(collection.name)
        with pytest.raises(JobNotFound):
            rows.job_report(job.id)
        assert rows.purge_dropped() == [collection.key]

    def test_only_jobs_of_the_named_kinds_are_claimed(self, rows: Rows, collection: Collection) -> None:
        evaluation = submit_evaluation(rows, collection)
        write = rows.submit_job(collection.key, JobKind.DELETE, inputs(1))
        claimed = rows.claim_job("w", lease_s=60, kinds=[JobKind.DOCUMENTS, JobKind.DELETE])
        assert claimed is not None
        assert claimed.job.id == write.id
        assert rows.claim_job("w", lease_s=60, kinds=[JobKind.DELETE]) is None
        other = rows.claim_job("w", lease_s=60, kinds=[JobKind.EVALUATION])
        assert other is not None
        assert other.job.id == evaluation.id

    def test_jobs_are_listed_by_kind_and_collection(self, rows: Rows, collection: Collection) -> None:
        other = make_collection(rows, "other")
        here, there = submit_evaluation(rows, collection), submit_evaluation(rows, other)
        rows.submit_job(collection.key, JobKind.DELETE, inputs(1))
        of_kind = rows.jobs(kind=JobKind.EVALUATION)
        of_collection = rows.jobs(kind=JobKind.EVALUATION, collection_key=collection.key)
        assert [job.id for job in of_kind] == [there.id, here.id]
        assert [job.id for job in of_collection] == [here.id]
