"""Evaluations as jobs of the worker."""

import json
import threading
from collections.abc import Callable, Mapping

import pytest

from app.domain import Job, JobInput, JobKind, JobState
from app.engine.reading_models import ReadingModels
from app.errors import Conflict, InvalidInput
from app.storage.rows import ClaimedJob
from indexer.encoding import Stopped
from indexer.evaluation.jobs import MAX_ATTEMPTS, process
from indexer.worker import Worker
from tests.indexer.stand_ins import Bench, wait_until, working
from tests.reading_substitutes import WordOverlapReader
from tests.services.library import Library

LEXICAL = {"name": "words", "mode": "lexical", "fusion": None, "rerank": False, "candidates": None}
RERANKED = {**LEXICAL, "name": "reranked", "rerank": True}


def submit(library: Library, n_queries: int = 1, configuration: Mapping[str, object] = LEXICAL) -> Job:
    library.put({"a": "A castle.", "b": "A river."})
    queries = [{"id": str(i), "text": "castle", "judgements": {"a": 1}} for i in range(n_queries)]
    return library.rows.submit_job(
        library.collection.key,
        JobKind.EVALUATION,
        [JobInput(i, json.dumps(query).encode()) for i, query in enumerate(queries)],
        request=json.dumps({"configurations": [configuration]}),
    )


def claim(library: Library, *, lease_s: float = 60) -> ClaimedJob:
    claimed = library.rows.claim_job("w", lease_s=lease_s)
    assert claimed is not None
    return claimed


def run(
    library: Library,
    claimed: ClaimedJob,
    should_stop: Callable[[], bool] = lambda: False,
    load_reading: Callable[[], ReadingModels] = ReadingModels,
) -> None:
    process(
        claimed,
        rows=library.rows,
        index=library.index,
        embedder=library.embedder,
        worker="w",
        should_stop=should_stop,
        load_reading=load_reading,
    )


def test_the_result_is_stored_and_the_job_succeeds(library: Library) -> None:
    job = submit(library, n_queries=3)
    run(library, claim(library))
    done = library.rows.job(job.id)
    assert (done.state, done.n_done) == (JobState.SUCCEEDED, 3)
    result = json.loads(library.rows.job_report(job.id).result or "")
    assert result["configurations"][0]["metrics"]["MRR@10"]["mean"] == 1.0
    assert result["ndcg_by_query"] == {"words": {"0": 1.0, "1": 1.0, "2": 1.0}}


def test_a_reranked_configuration_loads_the_model_and_uses_it(library: Library) -> None:
    job = submit(library, configuration=RERANKED)
    reader = WordOverlapReader()
    run(library, claim(library), load_reading=lambda: ReadingModels(reader, reader))
    assert library.rows.job(job.id).state is JobState.SUCCEEDED
    assert reader.n_read > 0


def test_reranking_without_a_model_is_refused(library: Library) -> None:
    submit(library, configuration=RERANKED)
    with pytest.raises(InvalidInput, match="'reranked' needs a model that reranks"):
        run(library, claim(library))


def test_a_stopped_evaluation_begins_anew(library: Library) -> None:
    job = submit(library)
    with pytest.raises(Stopped):
        run(library, claim(library), should_stop=lambda: True)
    library.rows.release_job(job.id, "w")
    run(library, claim(library))
    assert library.rows.job(job.id).state is JobState.SUCCEEDED


def test_a_cancelled_evaluation_leaves_no_result(library: Library) -> None:
    job = submit(library)
    claimed = claim(library)
    library.rows.cancel_job(job.id)
    with pytest.raises(Conflict):
        run(library, claimed)
    assert library.rows.job_report(job.id).result is None


def test_an_evaluation_at_which_workers_died_again_and_again_is_given_up(library: Library) -> None:
    job = submit(library)
    for _ in range(MAX_ATTEMPTS):
        claim(library, lease_s=0)
    run(library, claim(library))
    done = library.rows.job(job.id)
    assert done.state is JobState.FAILED
    assert "died 3 times" in (done.error or "")


def test_an_evaluation_that_measured_two_forms_of_a_collection_fails(library: Library) -> None:
    """The names change while it asks; then there is one query of each form."""
    job = submit(library, n_queries=2)
    claimed = claim(library)
    switched: list[bool] = []

    def switch_once() -> bool:
        if not switched:
            switched.append(switch(library))
        return False

    run(library, claimed, should_stop=switch_once)
    done = library.rows.job(job.id)
    assert switched == [True]
    assert (done.state, done.collection) == (JobState.FAILED, library.collection.name)
    assert "switched to another form" in (done.error or "")


def switch(library: Library) -> bool:
    rows, model = library.rows, library.embedder.description
    rows.begin_reindex(
        library.collection.name,
        library.collection.settings,
        standby="standby",
        fingerprint=model.fingerprint,
        model=model.name,
    )
    claimed = rows.claim_job("v", lease_s=60, kinds=[JobKind.REINDEX])
    assert claimed is not None
    return rows.switch(claimed.job.id, "v", rows.change_mark(library.collection.key))


class Held:
    """An evaluation that lasts until it is told to end."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.began = threading.Event()
        self.end = threading.Event()

    def __call__(self, claimed: ClaimedJob, *, worker: str, should_stop: Callable[[], bool]) -> None:
        self.began.set()
        while not self.end.wait(0.01):
            if should_stop():
                raise Stopped
        self._bench.rows.finish_job(claimed.job.id, worker, JobState.SUCCEEDED, result="{}")


def submit_held(bench: Bench) -> Job:
    return bench.rows.submit_job(bench.collection.key, JobKind.EVALUATION, [JobInput(0, b"{}")], request="{}")


def evaluating(bench: Bench, held: Held) -> Worker:
    return Worker(bench.rows, bench.index, bench.ingestion, settings=bench.settings, evaluate=held)


def test_writes_do_not_wait_for_an_evaluation(bench: Bench) -> None:
    held, evaluation = Held(bench), submit_held(bench)
    with working(bench, evaluating(bench, held)):
        assert held.began.wait(30)
        write = bench.submit_documents({"id": "a", "text": "A castle."})
        wait_until(lambda: bench.rows.job(write.id).state.is_final)
        assert bench.rows.job(evaluation.id).state is JobState.RUNNING
        held.end.set()
        wait_until(lambda: bench.rows.job(evaluation.id).state.is_final)
    assert bench.rows.job(write.id).state is JobState.SUCCEEDED


def test_a_worker_that_stops_gives_its_evaluation_back(bench: Bench) -> None:
    held, evaluation = Held(bench), submit_held(bench)
    with working(bench, evaluating(bench, held)):
        assert held.began.wait(30)
    assert bench.rows.job(evaluation.id).state is JobState.QUEUED


def test_a_worker_without_evaluation_leaves_it_to_others(bench: Bench) -> None:
    evaluation = submit_held(bench)
    write = bench.submit_documents({"id": "a", "text": "A castle."})
    with working(bench):
        wait_until(lambda: bench.rows.job(write.id).state.is_final)
    assert bench.rows.job(evaluation.id).state is JobState.QUEUED
