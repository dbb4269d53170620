"""Evaluations that were asked for through the service: a job of judged queries, and its result."""

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from app.domain import Collection, Fusion, JobState
from app.engine.embedder import Embedder
from app.engine.reading_models import ReadingModels
from app.services.search import Search
from app.storage.index import Index
from app.storage.rows import ClaimedJob, Rows
from indexer.encoding import Stopped
from indexer.evaluation.asking import Measured, ask_all
from indexer.evaluation.comparison import differences
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset, counting
from indexer.evaluation.local import asking, require_reranker
from indexer.evaluation.metrics import NDCG
from indexer.evaluation.results import Evaluation, results

MAX_ATTEMPTS = 3
"""Claims after which it is given up: workers died while they were at it."""
RECORD_EVERY_S = 0.5
INPUTS_PER_READ = 500


def process(
    claimed: ClaimedJob,
    *,
    rows: Rows,
    index: Index,
    embedder: Embedder,
    worker: str,
    should_stop: Callable[[], bool],
    load_reading: Callable[[], ReadingModels] = ReadingModels,
) -> None:
    """Ask every query in every configuration and store the result. Begins anew after an interruption.

    Raises:
        Stopped: `should_stop` said so.
        Conflict: the job was cancelled or taken over.
        FingerprintMismatch: the collection was made by another model.
        InvalidInput: there is no model that reranks.
    """
    job = claimed.job
    if claimed.attempts > MAX_ATTEMPTS:
        message = f"given up: the worker died {MAX_ATTEMPTS} times while working on it"
        rows.finish_job(job.id, worker, JobState.FAILED, error=message)
        return
    request = json.loads(rows.job_report(job.id).request)
    chosen = [_configuration(each) for each in request["configurations"]]
    dataset = _dataset(rows, claimed, worker=worker)
    progress = _Progress(
        rows, claimed, worker=worker, n_steps=len(chosen) * len(dataset.queries), should_stop=should_stop
    )
    is_reranked = any(each.is_reranked for each in chosen)
    with closing(load_reading() if is_reranked else ReadingModels()) as reading:
        require_reranker(reading, chosen)
        ask = asking(Search(rows, index, embedder, reading), claimed.collection)
        measured = [ask_all(dataset, each, ask, advance=progress.advance) for each in chosen]
    if rows.collection(job.collection).key != claimed.collection.key:
        message = "the collection was switched to another form meanwhile, so this measured both; ask again"
        rows.finish_job(job.id, worker, JobState.FAILED, error=message)
        return
    result = _result(dataset, measured, claimed.collection, embedder)
    rows.record_progress(job.id, worker, job.n_inputs)
    rows.finish_job(job.id, worker, JobState.SUCCEEDED, result=result)


class _Progress:
    """Stored now and then, which also notices that the job was cancelled."""

    def __init__(
        self,
        rows: Rows,
        claimed: ClaimedJob,
        *,
        worker: str,
        n_steps: int,
        should_stop: Callable[[], bool],
    ) -> None:
        self._rows = rows
        self._job = claimed.job
        self._worker = worker
        self._n_steps = n_steps
        self._n_done = 0
        self._should_stop = should_stop
        self._recorded_at = time.monotonic()

    def advance(self) -> None:
        """Raises Stopped, Conflict."""
        if self._should_stop():
            raise Stopped
        self._n_done += 1
        if time.monotonic() >= self._recorded_at + RECORD_EVERY_S:
            self._recorded_at = time.monotonic()
            n_inputs = self._job.n_inputs * self._n_done // self._n_steps
            self._rows.record_progress(self._job.id, self._worker, n_inputs)


def _configuration(written: Mapping[str, Any]) -> Configuration:
    fusion = written["fusion"]
    return Configuration(
        written["name"],
        written["mode"],
        None if fusion is None else Fusion(**fusion),
        is_reranked=written["rerank"],
        candidates=written["candidates"],
    )


def _dataset(rows: Rows, claimed: ClaimedJob, *, worker: str) -> Dataset:
    """Raises Conflict."""
    judged = list(_judged_queries(rows, claimed))
    rows.record_progress(claimed.job.id, worker, 0)  # a job cancelled meanwhile has no inputs any more
    texts = {each["id"]: each["text"] for each in judged}
    return counting(
        texts,
        {each["id"]: each["judgements"] for each in judged},
        name=claimed.collection.name,
        split="",
        sources=("the request", "it"),
    )


def _judged_queries(rows: Rows, claimed: ClaimedJob) -> Iterator[Mapping[str, Any]]:
    start = 0
    while inputs := rows.job_inputs(claimed.job.id, start=start, limit=INPUTS_PER_READ):
        yield from (json.loads(each.body) for each in inputs)
        start = inputs[-1].ordinal + 1


def _result(
    dataset: Dataset, measured: Sequence[Measured], collection: Collection, embedder: Embedder
) -> str:
    found = results(
        Evaluation(
            dataset=dataset,
            measured=measured,
            differences=differences(measured),
            subject={"model": collection.model, "runtime": embedder.description.runtime},
            indexed=None,
            made_at=dt.datetime.now(dt.UTC),
        )
    )
    by_query = {
        each.name: dict(zip(each.run, each.metrics[NDCG].round(6).tolist(), strict=True)) for each in measured
    }
    return json.dumps({**found, "ndcg_by_query": by_query}, ensure_ascii=False, allow_nan=False)
