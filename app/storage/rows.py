"""The rows seam: the truth. Everything else can be rebuilt from what stands behind this Protocol.

Implementations: `app.storage.sqlite.SqliteRows`. The contract is `tests/storage/rows_contract.py`; every
implementation passes it unchanged.

A write method either happens as a whole and is durable when it returns, or raises and changed nothing.
Keys (of collections, documents, passages) grow and are never reused. `vectors` are float16, length 1.
Every revision of a document gets a new document key and new passage keys; what it replaces is
recorded as a tombstone, so that derived indexes can follow with `vectors_after` and `tombstones_after`.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.domain import (
    Collection,
    CollectionSettings,
    CollectionStats,
    Document,
    DocumentHead,
    Facet,
    Job,
    JobInput,
    JobKind,
    JobState,
    Outcome,
    SearchSettings,
    StoredDocument,
    StoredPassage,
    View,
)
from app.filters import Filter
from app.storage.alias_rows import AliasRows
from app.storage.classifier_rows import ClassifierRows
from app.storage.encoded import EncodedDocument, Vectors
from app.storage.key_rows import KeyRows
from app.storage.rebuild_rows import RebuildRows

__all__ = [
    "ClaimedJob",
    "EncodedDocument",
    "Generation",
    "JobReport",
    "Keys",
    "MetadataUpdate",
    "Rows",
    "TextRow",
    "Tombstones",
    "VectorBlock",
    "Vectors",
]

Keys = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """A document whose text and title stayed: only its metadata is replaced, keys and vectors stay."""

    document_id: str
    document: Document


@dataclass(frozen=True, slots=True)
class VectorBlock:
    keys: Keys  # (n,), ascending
    document_keys: Keys  # (n,), the owner of each; equal to `keys` in the documents view
    vectors: Vectors  # (n, d)


@dataclass(frozen=True, slots=True)
class TextRow:
    """What a lexical index needs of a passage."""

    key: int
    document_key: int
    title: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Tombstones:
    sequence: int
    """At least 1; give it back to get only newer ones."""
    keys: Keys  # (n,)
    is_complete: bool = True
    """False: some since the given sequence are no longer recorded; forget everything and load anew from 0."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    job: Job
    collection: Collection
    n_done: int
    """Inputs whose outcomes are stored already; go on with this ordinal."""
    attempts: int
    """Claims since an outcome was last stored, this one included; released claims do not count.

    1 normally; more means that workers died or stalled at this ordinal."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """Of a job that was submitted with a request: what was asked for, and what came of it, both JSON."""

    request: str
    result: str | None
    """None until it has succeeded."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A published base file of a derived index. At most one is current per (collection, view)."""

    collection_key: int
    view: View
    number: int
    max_key: int
    """All vectors with keys up to this one are in the base (or were deleted before it was built)."""
    n_vectors: int
    checksum: str
    details: str
    """JSON: kind of index, recall measured at build, seconds, size."""


class Rows(AliasRows, ClassifierRows, KeyRows, RebuildRows, Protocol):
    # Collections -----------------------------------------------------------------------------

    def create_collection(
        self, name: str, settings: CollectionSettings, *, fingerprint: str, model: str
    ) -> tuple[Collection, bool]:
        """Return (collection, was created). Idempotent for equal settings.

        Raises:
            CollectionExists: the name is taken with other settings or another fingerprint.
            NameTaken: it is an alias.
        """

    def collection(self, name: str) -> Collection:
        """Of this name, or the one that the alias of this name leads to. Raises CollectionNotFound."""

    def collections(self) -> Sequence[Collection]:
        """All, by name."""

    def set_search_settings(self, name: str, settings: SearchSettings) -> Collection:
        """Replace them; returns the collection as it is then.

        Raises:
            CollectionNotFound
            CollectionInUse: it is a standby, which gets those of its collection.
        """

    def drop_collection(self, name: str) -> None:
        """Make it, its standby and their jobs invisible at once; `purge_dropped` frees the space later.

        Where it is a standby, the job that fills it or switches to it is cancelled.
        The name can be used again immediately.

        Raises:
            CollectionNotFound
            NameTaken: it is an alias.
            CollectionInUse: aliases lead to it.
        """

    def purge_dropped(self, *, limit: int = 10_000) -> Sequence[int]:
        """Delete rows of dropped collections, at most `limit` documents and a bounded time per call.

        Returns the keys of collections that are now wholly gone, so that index files can go too.
        """

    def collection_stats(self, collection_key: int) -> CollectionStats: ...

    # Documents and passages ---------------------------------------------------------------------

    def write_documents(
        self,
        collection_key: int,
        changes: Sequence[EncodedDocument | MetadataUpdate | str],
        *,
        job_id: str,
        worker: str,
        outcomes: Sequence[Outcome],
    ) -> None:
        """Apply changes in order (a str deletes that document id) and store the job's outcomes, in one step.

        The last change to an id wins. `created_at` survives an update. A MetadataUpdate is relative to
        what is stored, or to an EncodedDocument of the same text earlier in `changes`. The ordinals of
        `outcomes` go on without a gap from those stored before.

        Raises:
            Conflict: the job is no longer leased to this worker; nothing was written.
            DocumentNotFound: a MetadataUpdate of an id that is not there.
            BadDocument: what no store can keep: a lone surrogate, NaN in metadata.
            BadVector: a vector without length 1, or of another dimension than the collection's.
        """

    def document(self, collection_key: int, document_id: str) -> StoredDocument:
        """Raises DocumentNotFound."""

    def content_hashes(self, collection_key: int, document_ids: Iterable[str]) -> dict[str, bytes]:
        """Hashes of those ids that exist."""

    def documents(
        self,
        collection_key: int,
        *,
        after: str | None = None,
        limit: int = 100,
        condition: Filter | None = None,
    ) -> Sequence[DocumentHead]:
        """By id in code point order, those that satisfy the condition, beginning after the id `after`."""

    def documents_by_key(self, document_keys: Sequence[int]) -> dict[int, DocumentHead]:
        """Those that are live."""

    def passages_by_key(
        self, passage_keys: Sequence[int], *, with_utf16: bool = False
    ) -> dict[int, StoredPassage]:
        """Those that are live; on request with their places in UTF-16, which takes all text before them."""

    def matching_documents(self, collection_key: int, condition: Filter) -> Keys:
        """Keys of live documents that satisfy the condition (`app.filters.matches`), ascending. Not writable.

        The same array is given again while it stays the same, so that what is derived from it can be kept.
        """

    def facets(
        self,
        collection_key: int,
        fields: Sequence[str],
        *,
        condition: Filter | None = None,
        limit: int = 10,
    ) -> Mapping[str, Facet]:
        """By field: its `limit` most frequent values among the live documents that satisfy the condition.

        Exact. A field that nobody has is missing everywhere.
        """

    # Feed for derived indexes -------------------------------------------------------------------

    def data_version(self) -> int:
        """Changes whenever anything was committed by anyone. Costs microseconds."""

    def vectors_after(
        self, collection_key: int, view: View, key: int, *, up_to: int | None = None, block: int = 4096
    ) -> Iterator[VectorBlock]:
        """Live vectors with `key` < their key <= `up_to`, ascending, in blocks."""

    def vectors_by_key(self, view: View, keys: Sequence[int]) -> VectorBlock:
        """Those that are live, ascending by key."""

    def texts_after(
        self, collection_key: int, key: int, *, up_to: int | None = None, block: int = 1024
    ) -> Iterator[Sequence[TextRow]]:
        """Live passages with `key` < their key <= `up_to`, ascending, in blocks."""

    def max_key(self, collection_key: int, view: View) -> int:
        """Largest key ever used in the collection, 0 if none."""

    def tombstones_after(self, collection_key: int, view: View, sequence: int) -> Tombstones:
        """Keys that died since `sequence` (0: all that are still recorded).

        Recorded for certain: what died since the base before the current one was published.
        """

    def generation(self, collection_key: int, view: View) -> Generation | None:
        """The current one."""

    def publish_generation(self, generation: Generation) -> None:
        """Make it current, replacing the one before in the same step."""

    def retract_generation(self, collection_key: int, view: View, number: int) -> None:
        """Its file is damaged or missing: no generation is current afterwards."""

    # Jobs -----------------------------------------------------------------------------------------

    def submit_job(
        self, collection_key: int, kind: JobKind, inputs: Iterable[JobInput], *, request: str | None = None
    ) -> Job:
        """Store a job durably; acknowledged means it will be done. Inputs may be a stream.

        A job with a request, which is JSON, has a report and is kept until it is forgotten. Documents for a
        standby go to its collection: it had the name when they were sent.
        """

    def job(self, job_id: str) -> Job:
        """Raises JobNotFound."""

    def jobs(
        self,
        *,
        after: str | None = None,
        limit: int = 100,
        state: JobState | None = None,
        kind: JobKind | None = None,
        collection_key: int | None = None,
        collections: Iterable[str] | None = None,
    ) -> Sequence[Job]:
        """Newest first, those older than the job `after`. Raises BadCursor if that is not there.

        `collections` are names of those whose jobs are wanted.
        """

    def job_report(self, job_id: str) -> JobReport:
        """Raises JobNotFound, also for a job without a request."""

    def forget_job(self, job_id: str) -> None:
        """Delete it with its inputs, outcomes and report; one that runs is cancelled by that.

        Raises JobNotFound.
        """

    def outcomes(self, job_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[Outcome]:
        """By ordinal, those greater than `after`. Raises JobNotFound."""

    def cancel_job(self, job_id: str) -> Job:
        """Queued: cancelled at once. Running: the worker stops at its next write; what was written stays.

        Raises JobNotFound, JobFinished.
        """

    def claim_job(
        self, worker: str, *, lease_s: float, kinds: Iterable[JobKind] | None = None
    ) -> ClaimedJob | None:
        """Lease the oldest job that is queued, or running under an expired lease. First in, first out.

        `kinds` are those to choose from; None is all.
        """

    def job_inputs(self, job_id: str, *, start: int, limit: int) -> Sequence[JobInput]:
        """Inputs from that ordinal on."""

    def renew_lease(self, job_id: str, worker: str, *, lease_s: float) -> bool:
        """False: stop working on it, it was cancelled or taken over."""

    def release_job(self, job_id: str, worker: str) -> None:
        """Give it back unfinished: it can be claimed at once, before all younger jobs.

        Nothing happens if the lease is lost.
        """

    def record_progress(self, job_id: str, worker: str, n_done: int) -> None:
        """Of a job that has a result instead of outcomes: how many inputs are done.

        Raises Conflict if the lease is lost.
        """

    def finish_job(
        self,
        job_id: str,
        worker: str,
        state: JobState,
        *,
        error: str | None = None,
        result: str | None = None,
    ) -> None:
        """Make it final and drop its inputs. Outcomes stay, and a result goes into its report.

        Raises Conflict if the lease is lost.
        """

    def n_unfinished_jobs(self) -> int: ...

    def job_counts(self) -> Mapping[JobState, int]:
        """How many are in each state; states without jobs are left out."""

    def prune_jobs(self, *, finished_before: dt.datetime, limit: int = 100) -> int:
        """Forget the oldest final jobs without a report, and their outcomes; returns how many."""

    # Worker ------------------------------------------------------------------------------------------

    def worker_heartbeat(self, worker: str, *, lease_s: float) -> bool:
        """Take or renew the one worker lease. False: another live worker holds it.

        A lease whose holder is known for certain to be dead is free before it runs out, and so is its job.
        """

    def worker_release(self, worker: str) -> None: ...

    def worker_alive(self) -> bool:
        """Whether some worker's lease is unexpired."""

    def close(self) -> None: ...
