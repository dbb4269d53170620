"""Turns a claimed job into rows: read its inputs, leave alone what did not change, encode the rest, store.

A job is worked off in chunks. Each chunk's documents and outcomes are stored in one step, so wherever
the process dies, the next claim goes on behind the last stored outcome and nothing is done twice or missed.
An id appears once per chunk, so inputs have the effect of one after the other: of several with one id the
last wins, and the outcome of each says what it did when its turn came.
"""

import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.domain import (
    SPLITTER_VERSION,
    Collection,
    Document,
    JobKind,
    JobState,
    Metadata,
    Outcome,
    OutcomeStatus,
)
from app.errors import FingerprintMismatch, InvalidInput
from app.storage.index import Index
from app.storage.rows import ClaimedJob, EncodedDocument, MetadataUpdate, Rows
from indexer.documents import content_hash
from indexer.encoding import DocumentEncoder, Encoded, Stopped
from indexer.inputs import InputReader, Part

logger = logging.getLogger(__name__)

CHUNK_CHARS = 400_000
"""Of text per step: some hundred passages, seconds of encoding. Bounds memory and what a crash costs."""
CHUNK_PARTS = 2_000
MAX_ATTEMPTS = 3
"""Claims without a stored outcome after which the input they stopped at is set aside."""

Change = EncodedDocument | MetadataUpdate | str


@dataclass(frozen=True, slots=True)
class Result:
    """What happens to one part of an input."""

    part: Part
    status: OutcomeStatus
    change: Change | None = None
    error: str | None = None
    warnings: tuple[str, ...] = ()
    n_passages: int = 0
    n_tokens: int = 0


class Ingestion:
    """The one write path: everything that changes documents goes through `process`."""

    def __init__(self, rows: Rows, index: Index, encoder: DocumentEncoder, reader: InputReader) -> None:
        self._rows = rows
        self._index = index
        self._encoder = encoder
        self._reader = reader

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
        if job.kind is not JobKind.DELETE:
            self._check_fingerprint(collection)
        pending: list[Result] = []  # of a file whose other documents are in the next chunk
        for chunk in chunks(self._parts(claimed), one_by_one_until=_suspect_until(claimed)):
            results = self._plan(collection, chunk, should_stop)
            if should_stop():
                raise Stopped
            done, pending = _finished([*pending, *results])
            self._rows.write_documents(
                collection.key,
                [result.change for result in results if result.change is not None],
                job_id=job.id,
                worker=worker,
                outcomes=[_outcome(of_input) for of_input in done],
            )
            self._index.apply(collection)
        self._index.apply(collection)  # what an earlier claim stored just before it died
        self._rows.finish_job(job.id, worker, JobState.SUCCEEDED)

    def _check_fingerprint(self, collection: Collection) -> None:
        if collection.fingerprint != self._encoder.fingerprint:
            raise FingerprintMismatch(
                f"the collection {collection.name!r} was made by the model {collection.model} "
                f"({collection.fingerprint[:12]}), the worker runs {self._encoder.model} "
                f"({self._encoder.fingerprint[:12]}); start service and worker with the collection's model, "
                "or create another collection and send the documents again"
            )
        if collection.settings.splitter.version != SPLITTER_VERSION:
            raise FingerprintMismatch(
                f"the collection {collection.name!r} was made by splitter version "
                f"{collection.settings.splitter.version}, the worker has version {SPLITTER_VERSION}; "
                "create another collection and send the documents again"
            )

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

    def _plan(
        self, collection: Collection, chunk: Sequence[Part], should_stop: Callable[[], bool]
    ) -> list[Result]:
        stored = self._rows.content_hashes(
            collection.key, [part.document_id for part in chunk if part.document_id and not part.error]
        )
        results: list[Result | None] = [self._cheap_result(collection, part, stored) for part in chunk]
        new = [part.document for part, result in zip(chunk, results, strict=True) if result is None]
        encoded = iter(
            self._encoder.encode(
                [document for document in new if document], collection.settings.splitter, should_stop
            )
        )
        return [
            self._encoded_result(part, next(encoded), is_update=part.document_id in stored)
            if result is None
            else result
            for part, result in zip(chunk, results, strict=True)
        ]

    def _cheap_result(self, collection: Collection, part: Part, stored: dict[str, bytes]) -> Result | None:
        """What needs no model; None for a document that has to be encoded."""
        if part.error is not None:
            return Result(part, OutcomeStatus.REJECTED, error=part.error)
        assert part.document_id is not None
        if part.document is None:
            if part.document_id in stored:
                return Result(part, OutcomeStatus.DELETED, change=part.document_id)
            return Result(part, OutcomeStatus.NOT_FOUND)
        digest = content_hash(
            part.document, collection.settings.splitter, fingerprint=self._encoder.fingerprint
        )
        if stored.get(part.document_id) != digest:
            return None
        return self._same_content_result(collection, part, part.document)

    def _same_content_result(self, collection: Collection, part: Part, document: Document) -> Result:
        old = self._rows.document(collection.key, document.id)
        is_same = _canonical(old.document.metadata) == _canonical(document.metadata)
        return Result(
            part,
            OutcomeStatus.UNCHANGED if is_same else OutcomeStatus.UPDATED,
            change=None if is_same else MetadataUpdate(document.id, document),
            n_passages=old.n_passages,
            n_tokens=old.n_tokens,
        )

    def _encoded_result(self, part: Part, encoded: Encoded | InvalidInput, *, is_update: bool) -> Result:
        if isinstance(encoded, InvalidInput):
            return Result(part, OutcomeStatus.REJECTED, error=f"text: {encoded}")
        return Result(
            part,
            OutcomeStatus.UPDATED if is_update else OutcomeStatus.CREATED,
            change=encoded.change,
            warnings=encoded.warnings,
            n_passages=len(encoded.change.passages),
            n_tokens=encoded.change.n_tokens,
        )


def chunks(parts: Iterable[Part], *, one_by_one_until: int = 0) -> Iterator[list[Part]]:
    """Cut where a chunk is full or an id comes again.

    Inputs before the ordinal `one_by_one_until` are each a chunk of their own, and given out before the
    next one is looked at: if a worker dies, it is known at which.
    """
    chunk: list[Part] = []
    ids: set[str | None] = set()
    n_chars = 0
    for part in parts:
        if chunk and (
            part.document_id in ids or len(chunk) >= CHUNK_PARTS or n_chars + part.n_chars > CHUNK_CHARS
        ):
            yield chunk
            chunk, ids, n_chars = [], set(), 0
        chunk.append(part)
        n_chars += part.n_chars
        if part.error is None:
            ids.add(part.document_id)
        if part.ordinal < one_by_one_until and part.is_last:
            yield chunk
            chunk, ids, n_chars = [], set(), 0
    if chunk:
        yield chunk


def _suspect_until(claimed: ClaimedJob) -> int:
    """After a claim that stored nothing, some input of what would be its first chunk may be the reason."""
    return 0 if claimed.attempts == 1 else claimed.n_done + CHUNK_PARTS


def _finished(results: Sequence[Result]) -> tuple[list[list[Result]], list[Result]]:
    """Group by input; give those whose last part is there, and the results of the one that goes on."""
    groups = [list(group) for _, group in itertools.groupby(results, lambda result: result.part.ordinal)]
    if groups and not groups[-1][-1].part.is_last:
        return groups[:-1], groups[-1]
    return groups, []


def _outcome(results: Sequence[Result]) -> Outcome:
    """Of one input. A file of several documents is created if one of them is, else updated if one is."""
    statuses = {result.status for result in results}
    status = next(status for status in STRONGEST_FIRST if status in statuses)
    first = results[0].part
    n_rejected = sum(result.status is OutcomeStatus.REJECTED for result in results)
    errors = [result.error for result in results if result.error is not None]
    warnings = [warning for result in results for warning in result.warnings]
    if n_rejected and status is not OutcomeStatus.REJECTED:
        warnings = [f"{n_rejected} of {len(results)} documents of the file were rejected", *errors, *warnings]
    return Outcome(
        ordinal=first.ordinal,
        document_id=first.document_id if len(results) == 1 else first.name,
        status=status,
        n_documents=len(results) - n_rejected,
        n_passages=sum(result.n_passages for result in results),
        n_tokens=sum(result.n_tokens for result in results),
        error=errors[0] if status is OutcomeStatus.REJECTED else None,
        warnings=tuple(warnings[:MAX_WARNINGS]),
    )


STRONGEST_FIRST = (
    OutcomeStatus.CREATED,
    OutcomeStatus.UPDATED,
    OutcomeStatus.DELETED,
    OutcomeStatus.UNCHANGED,
    OutcomeStatus.NOT_FOUND,
    OutcomeStatus.REJECTED,
)
MAX_WARNINGS = 20
"""Per outcome: a file of 100,000 rows in a foreign script says so once, not 100,000 times."""


def _canonical(metadata: Metadata) -> str:
    """Equal for equal metadata, whatever the order of fields; 1, 1.0 and true are three different values."""
    return json.dumps(metadata, sort_keys=True)
