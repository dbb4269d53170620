"""Turns a claimed job into rows: read its inputs, leave alone what did not change, encode the rest, store.

A job is worked off in chunks. Each chunk's documents and outcomes are stored in one step, so wherever
the process dies, the next claim goes on behind the last stored outcome and nothing is done twice or missed.
An id appears once per chunk, so inputs have the effect of one after the other: of several with one id the
last wins, and the outcome of each says what it did when its turn came.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TypeVar

from app.domain import SPLITTER_VERSION, Collection, JobKind, JobState
from app.errors import FingerprintMismatch
from app.storage.index import Index
from app.storage.rows import ClaimedJob, Rows
from indexer.encoding import DocumentEncoder, Stopped, encoder_of
from indexer.inputs import InputReader, Part
from indexer.outcomes import finished_inputs, outcome_of
from indexer.planning import CHUNK_PARTS, Plan, Result, ToEncode, chunks, ids_of, plan

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Claims without a stored outcome after which the input they stopped at is set aside."""


class Ingestion:
    """The one write path: everything that changes documents goes through `process`."""

    def __init__(
        self,
        rows: Rows,
        index: Index,
        encoder: DocumentEncoder,
        reader: InputReader,
        *,
        second: DocumentEncoder | None = None,
    ) -> None:
        """`second` encodes for collections that its model made."""
        self._rows = rows
        self._index = index
        self._encoder = encoder
        self._second = second
        self._reader = reader
        self._writing = threading.Lock()

    def paused(self) -> AbstractContextManager[object]:
        """While it is held, nothing is written: jobs wait before their next step."""
        return self._writing

    def process(
        self, claimed: ClaimedJob, *, worker: str, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Do the rest of the job, make it visible to searches, then call it succeeded.

        Raises:
            Stopped: `should_stop` said so; the job can be released and goes on later from where it is.
            FingerprintMismatch: the collection was made by another model or splitter.
            Conflict: the job was cancelled or taken over; what is stored stays.
        """
        job, collection = claimed.job, claimed.collection
        encoder = self._encoder if job.kind is JobKind.DELETE else self._encoder_of(collection)
        pending: list[Result] = []  # of a file whose other documents are in the next chunk
        for decisions in self._plans(claimed, encoder):
            results = self._results(decisions, encoder, should_stop)
            if should_stop():
                raise Stopped
            done, pending = finished_inputs([*pending, *results])
            with self._writing:
                self._rows.write_documents(
                    collection.key,
                    [result.change for result in results if result.change is not None],
                    job_id=job.id,
                    worker=worker,
                    outcomes=[outcome_of(of_input) for of_input in done],
                )
            self._index.apply(collection)
        self._index.apply(collection)  # what an earlier claim stored just before it died
        self._rows.finish_job(job.id, worker, JobState.SUCCEEDED)

    def _plans(self, claimed: ClaimedJob, encoder: DocumentEncoder) -> Iterator[Plan]:
        """Of chunk after chunk, each by what is stored when it is given out.

        The next chunk is read, split and planned while the model works on this one; where both have an id
        in common, it is planned again once this one is stored. After a claim that stored nothing, some input
        may be deadly: then nothing is read ahead and inputs come one by one, to know which.
        """

        def planned(chunk: Sequence[Part]) -> Plan:
            return plan(claimed.collection, chunk, rows=self._rows, encoder=encoder)

        if claimed.attempts > 1:
            suspect = chunks(self._parts(claimed), one_by_one_until=claimed.n_done + CHUNK_PARTS)
            yield from (planned(chunk) for chunk in suspect)
            return
        before: set[str | None] = set()
        for decisions in one_ahead(planned(chunk) for chunk in chunks(self._parts(claimed))):
            ids = ids_of(decisions)
            yield decisions if ids.isdisjoint(before) else planned([each.part for each in decisions])
            before = ids

    def _encoder_of(self, collection: Collection) -> DocumentEncoder:
        found = encoder_of(collection.fingerprint, self._encoder, self._second)
        if found is None:
            raise FingerprintMismatch(
                f"the collection {collection.name!r} was made by the model {collection.model} "
                f"({collection.fingerprint[:12]}), the worker runs {self._encoder.model} "
                f"({self._encoder.fingerprint[:12]}); start service and worker with the collection's model, "
                "or re-index it with theirs: `bifocal reindex`, or POST .../reindex"
            )
        if collection.settings.splitter.version != SPLITTER_VERSION:
            raise FingerprintMismatch(
                f"the collection {collection.name!r} was made by splitter version "
                f"{collection.settings.splitter.version}, the worker has version {SPLITTER_VERSION}; "
                "re-index it: `bifocal reindex`, or POST .../reindex"
            )
        return found

    def _parts(self, claimed: ClaimedJob) -> Iterator[Part]:
        job, start = claimed.job, claimed.n_done
        if claimed.attempts > MAX_ATTEMPTS:
            for suspect in self._rows.job_inputs(job.id, start=start, limit=1):
                logger.error("input set aside, workers died at it job=%s input=%d", job.id, start)
                yield Part.refused(
                    suspect, f"set aside unread: the worker died {MAX_ATTEMPTS} times while working on it"
                )
                start += 1
        yield from self._reader.read(self._rows, job, start=start)

    def _results(
        self, decisions: Plan, encoder: DocumentEncoder, should_stop: Callable[[], bool]
    ) -> list[Result]:
        """The decisions with what had to be encoded encoded."""
        splits = [decision.split for decision in decisions if isinstance(decision, ToEncode)]
        encoded = iter(encoder.encode(splits, should_stop) if splits else [])
        return [
            decision.result(next(encoded)) if isinstance(decision, ToEncode) else decision
            for decision in decisions
        ]


def one_ahead(values: Iterator[T]) -> Iterator[T]:
    """The same values; while one is in use, a thread makes the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="preparing") as executor:
        ahead = executor.submit(next, values, None)
        while (value := ahead.result()) is not None:
            ahead = executor.submit(next, values, None)
            yield value
