"""Evaluation in this process: the corpus through the ordinary jobs, queries through the search service."""

import time
from collections.abc import Callable, Iterable, Iterator

from app.domain import Collection, Job, JobInput, JobKind, JobState, OutcomeStatus, Rerank
from app.engine.reading_models import ReadingModels
from app.errors import InvalidInput, JobFailed
from app.services.search import Search
from app.storage.rows import Rows
from indexer.evaluation.asking import Answer, Ask
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import CorpusDocument
from indexer.evaluation.indexing import Indexed, batches, require_only_the_corpus
from indexer.evaluation.metrics import DEPTH

POLL_S = 0.02


def index(
    rows: Rows,
    collection: Collection,
    documents: Iterator[CorpusDocument],
    *,
    check_worker: Callable[[], None],
    advance: Callable[[int], None] = lambda _: None,
) -> Indexed:
    """Until every document has its outcome; one that did not change costs nothing.

    Args:
        check_worker: called while waiting; sees to it that a worker runs.
        advance: gets the number of documents done since the last call.

    Raises:
        JobFailed, InvalidInput: the collection holds other documents, too.
    """
    indexed = Indexed()
    began = time.monotonic()
    for batch in batches(documents):
        inputs = [JobInput(i, body) for i, body in enumerate(batch)]
        job = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs)
        job = _finished(rows, job, check_worker=check_worker, advance=advance)
        indexed.add(job.counts)
        if job.counts.get(OutcomeStatus.REJECTED) and indexed.first_error is None:
            indexed.first_error = _first_error(rows, job)
    indexed.seconds = time.monotonic() - began
    n_documents = rows.collection_stats(collection.key).n_documents
    require_only_the_corpus(collection.name, n_documents=n_documents, indexed=indexed)
    return indexed


def asking(search: Search, collection: Collection) -> Ask:
    """A configuration that is reranked needs a search with a reranker."""

    def ask(query: str, configuration: Configuration) -> Answer:
        result = search.asymmetric(
            collection.name,
            query,
            top_k=DEPTH,
            passages_per_hit=1,
            mode=configuration.mode,
            fusion=configuration.fusion,
            rerank=_rerank(configuration, collection),
        )
        return Answer(
            document_ids=tuple(hit.document_id for hit in result.hits),
            timings_ms=result.timings_ms,
            is_truncated=result.query_truncated,
        )

    return ask


def require_reranker(reading: ReadingModels, chosen: Iterable[Configuration]) -> None:
    """Raises InvalidInput."""
    named = next((each.name for each in chosen if each.is_reranked), None)
    if named is not None and reading.reranker is None:
        raise InvalidInput(f"{named!r} needs a model that reranks; set BIFOCAL_RERANKER")


def _rerank(configuration: Configuration, collection: Collection) -> Rerank | None:
    if not configuration.is_reranked:
        return None
    candidates = configuration.candidates or collection.search.candidates
    return Rerank() if candidates is None else Rerank(candidates=candidates)


def _finished(
    rows: Rows, job: Job, *, check_worker: Callable[[], None], advance: Callable[[int], None]
) -> Job:
    while True:
        check_worker()
        before, job = job.n_done, rows.job(job.id)
        advance(job.n_done - before)
        if job.state is JobState.SUCCEEDED:
            return job
        if job.state.is_final:
            raise JobFailed(
                f"indexing the corpus ended as {job.state.value}: {job.error or 'no reason given'}"
            )
        time.sleep(POLL_S)


def _first_error(rows: Rows, job: Job) -> str | None:
    after = -1
    while outcomes := rows.outcomes(job.id, after=after):
        for outcome in outcomes:
            if outcome.status is OutcomeStatus.REJECTED:
                return f"{outcome.document_id}: {outcome.error}"
        after = outcomes[-1].ordinal
    return None
