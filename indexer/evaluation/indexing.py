"""What putting a corpus into a collection comes to, whether in this process or through the service."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.domain import OutcomeStatus
from app.errors import InvalidInput
from indexer.evaluation.dataset import CorpusDocument

MAX_BATCH_DOCUMENTS = 1_000
MAX_BATCH_BYTES = 8_000_000


@dataclass(slots=True)
class Indexed:
    """Documents by outcome. `seconds` includes splitting, encoding and storing."""

    counts: dict[OutcomeStatus, int] = field(default_factory=dict)
    first_error: str | None = None
    """Of a rejected document."""
    seconds: float = 0.0

    def add(self, counts: Mapping[OutcomeStatus, int]) -> None:
        for status, n in counts.items():
            self.counts[status] = self.counts.get(status, 0) + n

    @property
    def n_rejected(self) -> int:
        return self.counts.get(OutcomeStatus.REJECTED, 0)

    @property
    def n_present(self) -> int:
        return sum(self.counts.values()) - self.n_rejected

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.n_rejected:
            return ()
        return (
            f"{self.n_rejected} documents of the corpus were rejected, the first because: {self.first_error}",
        )


def batches(documents: Iterator[CorpusDocument]) -> Iterator[list[bytes]]:
    """JSON of documents, in batches that one request or job may have."""
    batch: list[bytes] = []
    size_bytes = 0
    for document in documents:
        body = _as_json(document)
        if batch and (len(batch) == MAX_BATCH_DOCUMENTS or size_bytes + len(body) > MAX_BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(body)
        size_bytes += len(body)
    if batch:
        yield batch


def require_only_the_corpus(collection: str, *, n_documents: int, indexed: Indexed) -> None:
    """Documents beside the corpus would be ranked among it and make every figure wrong.

    Raises:
        InvalidInput: there are some.
    """
    n_others = n_documents - indexed.n_present
    if n_others:
        raise InvalidInput(
            f"the collection {collection!r} holds {n_others} documents that the corpus lacks; name another "
            f"one with --collection, or delete it first (bifocal collections delete {collection})"
        )


def _as_json(document: CorpusDocument) -> bytes:
    fields = {"id": document.id, "text": document.text}
    if document.title is not None:
        fields["title"] = document.title
    return json.dumps(fields).encode()
