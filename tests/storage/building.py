"""Documents with made vectors, and the shortest way to get them into rows."""

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from app.domain import (
    Collection,
    CollectionSettings,
    Document,
    JobInput,
    JobKind,
    JobState,
    Metadata,
    Outcome,
    OutcomeStatus,
    Passage,
)
from app.storage.rows import EncodedDocument, MetadataUpdate, Rows, Vectors

DIMENSIONS = 8


def unit_vectors(n_vectors: int, *, seed: str) -> Vectors:
    """(n, DIMENSIONS), the same for the same seed."""
    digest = hashlib.sha256(seed.encode(errors="surrogatepass")).digest()
    vectors = np.random.default_rng(list(digest)).normal(size=(n_vectors, DIMENSIONS))
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return unit


def encoded(
    document_id: str,
    text: str = "One passage. Another passage.",
    *,
    n_passages: int = 2,
    title: str | None = None,
    metadata: Metadata | None = None,
    page_starts: tuple[int, ...] = (),
    unknown_share: float = 0.0,
) -> EncodedDocument:
    """The text in `n_passages` slices of 10 tokens each."""
    borders = [i * len(text) // n_passages for i in range(n_passages + 1)] if n_passages else [0]
    vectors = unit_vectors(n_passages + 1, seed=text)
    return EncodedDocument(
        document=Document(document_id, text, title, metadata or {}, page_starts),
        content_hash=hashlib.sha256(text.encode(errors="surrogatepass")).digest(),
        passages=[Passage(start, end, 10) for start, end in pairwise(borders)],
        passage_vectors=vectors[1:],
        document_vector=vectors[0],
        n_tokens=10 * n_passages,
        unknown_share=unknown_share,
    )


def make_collection(rows: Rows, name: str = "books") -> Collection:
    return rows.create_collection(name, CollectionSettings(), fingerprint="print", model="model")[0]


def inputs(n_inputs: int) -> Sequence[JobInput]:
    return [JobInput(i, b"input %d" % i) for i in range(n_inputs)]


def outcome(ordinal: int, document_id: str = "a") -> Outcome:
    return Outcome(ordinal, document_id, OutcomeStatus.CREATED)


def write(rows: Rows, collection: Collection, *changes: EncodedDocument | MetadataUpdate | str) -> None:
    """Apply changes as a job of one input; the queue must be empty."""
    job = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(1))
    assert rows.claim_job("writer", lease_s=60) is not None
    rows.write_documents(collection.key, changes, job_id=job.id, worker="writer", outcomes=[outcome(0)])
    rows.finish_job(job.id, "writer", JobState.SUCCEEDED)
