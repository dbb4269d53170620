"""What a job does, decided before the model runs: chunks, and what becomes of each part in them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain import Collection, Document, Metadata, OutcomeStatus
from app.errors import InvalidInput
from app.storage.rows import EncodedDocument, MetadataUpdate, Rows
from indexer.documents import describe
from indexer.encoding import DocumentEncoder, Encoded, SplitDocument
from indexer.inputs import Part

CHUNK_CHARS = 200_000
"""Of text per step: some 250 passages, seconds of encoding. Bounds memory and what a crash costs."""
CHUNK_PARTS = 2_000

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


@dataclass(frozen=True, slots=True)
class ToEncode:
    """A part whose document is new or has another content."""

    part: Part
    split: SplitDocument
    is_update: bool

    def result(self, encoded: Encoded | InvalidInput) -> Result:
        if isinstance(encoded, InvalidInput):
            return Result(self.part, OutcomeStatus.REJECTED, error=f"text: {encoded}")
        return Result(
            self.part,
            OutcomeStatus.UPDATED if self.is_update else OutcomeStatus.CREATED,
            change=encoded.change,
            warnings=encoded.warnings,
            n_passages=len(encoded.change.passages),
            n_tokens=encoded.change.n_tokens,
        )


Plan = Sequence[Result | ToEncode]


def plan(collection: Collection, chunk: Sequence[Part], *, rows: Rows, encoder: DocumentEncoder) -> Plan:
    """Decide about each part, by what is stored now; one decision per part, in order."""
    ids = [part.document_id for part in chunk if part.document_id is not None and part.error is None]
    stored = rows.content_hashes(collection.key, ids)
    return [_decide(collection, part, stored, rows, encoder) for part in chunk]


def ids_of(decisions: Plan) -> set[str | None]:
    return {decision.part.document_id for decision in decisions if decision.part.error is None}


def _decide(
    collection: Collection, part: Part, stored: Mapping[str, bytes], rows: Rows, encoder: DocumentEncoder
) -> Result | ToEncode:
    if part.error is not None:
        return Result(part, OutcomeStatus.REJECTED, error=part.error)
    assert part.document_id is not None
    is_stored = part.document_id in stored
    if part.document is None:
        if is_stored:
            return Result(part, OutcomeStatus.DELETED, change=part.document_id)
        return Result(part, OutcomeStatus.NOT_FOUND)
    splitter = collection.settings.splitter
    if is_stored and stored[part.document_id] == encoder.content_hash(part.document, splitter):
        return _same_content(collection, part, part.document, rows)
    try:
        return ToEncode(part, encoder.split(part.document, splitter), is_update=is_stored)
    except InvalidInput as error:
        return Result(part, OutcomeStatus.REJECTED, error=describe(error))


def _same_content(collection: Collection, part: Part, document: Document, rows: Rows) -> Result:
    old = rows.document(collection.key, document.id)
    is_same = _canonical(old.document.metadata) == _canonical(document.metadata)
    return Result(
        part,
        OutcomeStatus.UNCHANGED if is_same else OutcomeStatus.UPDATED,
        change=None if is_same else MetadataUpdate(document.id, document),
        n_passages=old.n_passages,
        n_tokens=old.n_tokens,
    )


def _canonical(metadata: Metadata) -> str:
    """Equal for equal metadata, whatever the order of fields; 1, 1.0 and true are three different values."""
    return json.dumps(metadata, sort_keys=True)


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
