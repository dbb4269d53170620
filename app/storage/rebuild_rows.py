"""Part of the rows seam (`app.storage.rows`): a collection in two forms, of which one is searched.

The standby has the documents of a collection, split or encoded or indexed otherwise. It is built beside the
collection, follows what is written meanwhile, and then both change their names in one step: aliases, jobs,
search settings and keys of callers stay with the names. What was searched before is the standby then, and the
way back is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.domain import Collection, CollectionSettings, Job, StoredDocument
from app.storage.encoded import EncodedDocument


@dataclass(frozen=True, slots=True)
class Differing:
    """A document that the standby lacks, or has another revision or other metadata of."""

    document_id: str
    size_bytes: int
    """Of its text."""
    is_same_text: bool
    """Only metadata differ."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A document of the collection for its standby, which keeps its moments of creation and change."""

    source: StoredDocument
    encoded: EncodedDocument | None
    """None: the standby has this text, and gets the metadata."""


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """Equal as long as no document of the collection was written, changed or deleted."""

    max_document_key: int
    tombstone: int
    metadata_version: int


class RebuildRows(Protocol):
    def begin_reindex(
        self, name: str, settings: CollectionSettings, *, standby: str, fingerprint: str, model: str
    ) -> Job:
        """Make an empty standby, and the job that fills it and switches to it.

        If that job does not succeed, the standby is dropped.

        Raises:
            CollectionNotFound
            CollectionInUse: it has a standby, or is one.
            NameTaken: `standby` is the name of a collection or an alias.
        """

    def begin_rollback(self, name: str) -> Job:
        """Make the job that brings the standby up to date and switches to it.

        Raises:
            CollectionNotFound
            StandbyMissing: there is none, or it is being built.
            CollectionInUse: it is a standby, or such a job is under way.
        """

    def standby(self, collection_key: int) -> Collection:
        """Raises CollectionNotFound."""

    def change_mark(self, collection_key: int) -> ChangeMark:
        """Raises CollectionNotFound."""

    def differing_documents(
        self, source_key: int, target_key: int, *, after: str | None = None, limit: int = 500
    ) -> Sequence[Differing]:
        """Of the source, by id, beginning after the id `after`."""

    def surplus_documents(self, source_key: int, target_key: int, *, limit: int = 500) -> Sequence[str]:
        """Ids of the target that the source has not, in order."""

    def write_copies(
        self, target_key: int, changes: Sequence[Copy | str], *, job_id: str, worker: str
    ) -> None:
        """Write these documents into the standby (a str deletes that document id), and count them as done.

        Raises:
            Conflict: the job is no longer leased to this worker; nothing was written.
            BadVector: as `write_documents`.
        """

    def switch(self, job_id: str, worker: str, mark: ChangeMark) -> bool:
        """Let collection and standby change names, and make the job succeed, in one step.

        Jobs that are writing go on with what has the name then. False: the collection is not as it was at
        `mark`, and nothing happened.

        Raises Conflict: the job is no longer leased to this worker.
        """
