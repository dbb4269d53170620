"""The nouns of the product: frozen dataclasses that know nothing of HTTP, SQL, arrays or models.

Read this first. Offsets are half-open and count Unicode code points of the stored text, so
`document.text[start:end]` is always the quoted text.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from app.domain.metadata import Metadata as Metadata
from app.domain.metadata import MetadataScalar as MetadataScalar
from app.domain.metadata import MetadataValue as MetadataValue
from app.domain.searches import Answer as Answer
from app.domain.searches import Facet as Facet
from app.domain.searches import FacetValue as FacetValue
from app.domain.searches import Hit as Hit
from app.domain.searches import Mode as Mode
from app.domain.searches import Offsets as Offsets
from app.domain.searches import PassageHit as PassageHit
from app.domain.searches import Rerank as Rerank
from app.domain.searches import Reranking as Reranking
from app.domain.searches import SearchResult as SearchResult
from app.domain.searches import Total as Total
from app.domain.searches import Utf16 as Utf16

View = Literal["passages", "documents"]
"""What a vector stands for: a passage (asymmetric search) or a whole document (symmetric search)."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text under an id chosen by the caller; identity is (collection, id), never the content."""

    id: str
    text: str
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    """Offset in `text` at which page 1, 2, ... begins; empty when the source has no pages."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A slice of a document that fits the encoder: `document.text[start:end]`, no copy of the text."""

    start: int
    end: int
    n_tokens: int
    """Tokens of the encoder's input for this passage: special tokens, title and text."""
    page: int | None = None
    """1-based page on which the passage starts."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the rows keep it. `key` is new for every revision of the text and is never reused."""

    key: int
    document: Document
    n_passages: int
    n_tokens: int
    unknown_share: float
    """Share of [UNK] among the text's tokens, 0..1; high means the model cannot read this text."""
    created_at: dt.datetime
    updated_at: dt.datetime


@dataclass(frozen=True, slots=True)
class DocumentHead:
    """A stored document without its text, which may be long: what a list and a hit need. Fields as there."""

    key: int
    id: str
    title: str | None
    metadata: Metadata
    n_chars: int
    """Of the text, in Unicode code points."""
    n_passages: int
    n_tokens: int
    unknown_share: float
    created_at: dt.datetime
    updated_at: dt.datetime


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage with what a hit needs to show it. `key` is never reused."""

    key: int
    document_key: int
    document_id: str
    title: str | None
    metadata: Metadata
    passage: Passage
    text: str
    """The slice itself."""
    utf16: Utf16 | None = None
    """Where it is in UTF-16 code units; None unless asked for."""


SPLITTER_VERSION = 1
"""Raised whenever the same text and settings would give other passages."""


@dataclass(frozen=True, slots=True)
class SplitterSettings:
    """How documents of a collection become passages. Counted in the encoder's tokens."""

    max_tokens: int = 256
    """Of a passage with special tokens and title; the encoder's own limit if that is smaller."""
    overlap_tokens: int = 32
    version: int = SPLITTER_VERSION


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How the vectors of a collection are searched."""

    exact_limit: int | None = None
    """Vectors above which the base is approximate; None leaves it to the service's setting."""


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    splitter: SplitterSettings = SplitterSettings()
    index: IndexSettings = IndexSettings()


@dataclass(frozen=True, slots=True)
class Fusion:
    """How hybrid search makes one ranking of two; see `app.engine.fusion`."""

    method: Literal["convex", "rrf"] = "convex"
    dense_weight: float = 0.8
    """0..1, of the convex combination. Chosen on training splits: docs/decisions/0011."""
    depth: int = 200
    """Passages that the dense leg contributes at first; by words there are four times as many. The fused
    score depends on it a little: what is not among those by words counts 0 there."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What searches of a collection take where the request does not say. May change at any time."""

    fusion: Fusion = Fusion()
    candidates: int | None = None
    """Documents that a cross-encoder ranks anew; None leaves it to the search."""


COLLECTION_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$"
"""1 to 63 characters that stand in a path as they are."""


@dataclass(frozen=True, slots=True)
class Collection:
    key: int
    name: str
    settings: CollectionSettings
    fingerprint: str
    """What made its vectors; see `Embedder.fingerprint`. A different one is refused."""
    model: str
    """Name of that model, for messages."""
    created_at: dt.datetime
    search: SearchSettings = SearchSettings()
    standby_of: str | None = None
    """Name of the collection whose documents it has in another form; only a switch changes it."""
    is_building: bool = False
    """A standby that has not all of the documents yet."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of a collection: whoever asks for it gets the collection."""

    name: str
    collection: str
    """Name of the collection."""
    created_at: dt.datetime
    updated_at: dt.datetime
    """When it was last pointed at a collection."""


@dataclass(frozen=True, slots=True)
class CollectionStats:
    n_documents: int
    n_passages: int
    n_tokens: int
    unknown_share: float
    size_bytes: int
    """Of the stored texts."""


class JobKind(StrEnum):
    DOCUMENTS = "documents"
    """Upsert documents: each input is one JSON document."""
    DELETE = "delete"
    """Delete documents: each input is one JSON string, the id."""
    FILES = "files"
    """Read files into documents: each input is one file."""
    REINDEX = "reindex"
    """Bring the standby of a collection up to date and switch to it: each input is one document."""
    EVALUATION = "evaluation"
    """Measure search: each input is one judged query."""


WRITES = (JobKind.DOCUMENTS, JobKind.DELETE, JobKind.FILES)
"""Kinds of jobs that change documents as callers ask for it."""


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """Every input has an outcome, of which some may be rejected, or there is a result of all."""
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class OutcomeStatus(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    NOT_FOUND = "not_found"
    """A delete of an id that was not there."""
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class JobInput:
    """One document, id or file of a job, kept durably until the job is final."""

    ordinal: int
    """0-based position in the request."""
    body: bytes
    name: str | None = None
    """File name as the client gave it: data, never a path."""
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one input."""

    ordinal: int
    document_id: str | None
    status: OutcomeStatus
    n_documents: int = 1
    """Documents that the input stands for: a file may hold many or, when rejected, none that is known."""
    n_passages: int = 0
    n_tokens: int = 0
    error: str | None = None
    """For REJECTED: what was wrong and what is allowed."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: JobKind
    collection: str
    state: JobState
    n_inputs: int
    n_done: int
    counts: Mapping[OutcomeStatus, int]
    """Of inputs."""
    created_at: dt.datetime
    started_at: dt.datetime | None = None
    finished_at: dt.datetime | None = None
    error: str | None = None
    """For FAILED: why."""
