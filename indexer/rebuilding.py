"""Brings the standby of a collection up to date, and switches to it.

Documents are copied in passes. A pass looks which documents of the standby differ from the collection's, so
it does not matter where an earlier one ended, or what was written in between. Passes get shorter, as only
what was written during the one before is left. If the collection is after a pass as it was before it, both
change their names in one transaction; where writes never pause, the last pass holds them up. Searches notice
nothing of it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from app.domain import SPLITTER_VERSION, Collection, JobState, StoredDocument
from app.errors import DocumentNotFound, FingerprintMismatch, InvalidInput
from app.storage.index import Index
from app.storage.rebuild_rows import Copy, Differing
from app.storage.rows import ClaimedJob, Rows
from indexer.encoding import DocumentEncoder, Stopped, encoder_of
from indexer.planning import CHUNK_CHARS

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Claims without anything written after which it is given up: workers died while they were at it."""
LITTLE_CHARS = 5 * CHUNK_CHARS
"""Of text that the last pass may have to encode while writes wait: some ten seconds."""
CHARS_PER_CHANGE = 1_000
"""What a change costs at least, though nothing has to be encoded for it."""
MAX_PASSES = 5
"""After which writes wait, however much is left."""
DOCUMENTS_PER_STEP = 500

Pause = Callable[[], AbstractContextManager[object]]


class Rebuild:
    """Works off jobs of the kind REINDEX.

    Args:
        encoder: of the model that the worker runs.
        second: of the second one, if it runs two.
        pause: holds up all other writes while its context is open.
        little_chars: of text; how much may be left to encode when it does.
    """

    def __init__(
        self,
        rows: Rows,
        index: Index,
        encoder: DocumentEncoder,
        *,
        pause: Pause,
        second: DocumentEncoder | None = None,
        little_chars: int = LITTLE_CHARS,
    ) -> None:
        self._rows = rows
        self._index = index
        self._encoder = encoder
        self._second = second
        self._pause = pause
        self._little_chars = little_chars

    def __call__(self, claimed: ClaimedJob, *, worker: str, should_stop: Callable[[], bool]) -> None:
        """Fill the standby, switch, and call the job succeeded.

        Raises:
            Stopped: `should_stop` said so; the job can be released, and finds what is done.
            Conflict: the job was cancelled or taken over.
            NotFound: a collection was dropped.
            FingerprintMismatch: the standby is to be made by another model than the worker runs.
            InvalidInput: a document that cannot be encoded so; nothing is switched.
        """
        if claimed.attempts > MAX_ATTEMPTS:
            message = f"given up: the worker died {MAX_ATTEMPTS} times while working on it"
            self._rows.finish_job(claimed.job.id, worker, JobState.FAILED, error=message)
            return
        standby = self._rows.standby(claimed.collection.key)
        encoder = self._encoder_of(standby)
        run = _Run(self._rows, self._index, encoder, claimed, standby, worker, should_stop)
        for n_passes in range(1, MAX_PASSES + 1):
            n_chars = run.copy_and_switch()
            logger.info("copied job=%s pass=%d n_chars=%d", claimed.job.id, n_passes, n_chars)
            if run.is_switched or n_chars <= self._little_chars:
                break
        while not run.is_switched:  # more than once only if something else writes, too
            with self._pause():
                run.copy_and_switch()
        logger.info("switched job=%s collection=%s", claimed.job.id, claimed.collection.name)

    def _encoder_of(self, standby: Collection) -> DocumentEncoder:
        found = encoder_of(standby.fingerprint, self._encoder, self._second)
        if found is None:
            raise FingerprintMismatch(
                f"{standby.name!r} is made by the model {standby.model} ({standby.fingerprint[:12]}), the "
                f"worker runs {self._encoder.model} ({self._encoder.fingerprint[:12]}); start service and "
                "worker with that model first, as BIFOCAL_EMBEDDER or BIFOCAL_SECOND_EMBEDDER"
            )
        if standby.settings.splitter.version != SPLITTER_VERSION:
            raise FingerprintMismatch(
                f"{standby.name!r} was made by splitter version {standby.settings.splitter.version}, the "
                f"worker has version {SPLITTER_VERSION}; delete it and re-index instead"
            )
        return found


@dataclass
class _Run:
    """One claim of a job."""

    rows: Rows
    index: Index
    encoder: DocumentEncoder
    claimed: ClaimedJob
    standby: Collection
    worker: str
    should_stop: Callable[[], bool]
    is_switched: bool = False

    def copy_and_switch(self) -> int:
        """One pass, and the switch if nothing was written meanwhile.

        Returns how many characters were copied, each change counted as `CHARS_PER_CHANGE` at least.
        """
        mark = self.rows.change_mark(self.claimed.collection.key)
        n_chars = self._copy_what_differs()
        self.is_switched = self.rows.switch(self.claimed.job.id, self.worker, mark)
        return n_chars

    def _copy_what_differs(self) -> int:
        n_chars = 0
        for changes in self._changes():
            self.rows.write_copies(self.standby.key, changes, job_id=self.claimed.job.id, worker=self.worker)
            self.index.apply(self.standby)
            n_chars += sum(_cost(each) for each in changes)
        self.index.apply(self.standby)  # what an earlier claim stored just before it died
        return n_chars

    def _changes(self) -> Iterator[Sequence[Copy | str]]:
        source_key = self.claimed.collection.key
        after = None
        while differing := self.rows.differing_documents(
            source_key, self.standby.key, after=after, limit=DOCUMENTS_PER_STEP
        ):
            for step in steps(differing):
                yield self._copies(step)
            after = differing[-1].document_id
        while surplus := self.rows.surplus_documents(source_key, self.standby.key, limit=DOCUMENTS_PER_STEP):
            self._stop_if_asked()
            yield surplus

    def _copies(self, step: Sequence[Differing]) -> Sequence[Copy]:
        """Encoded where their texts are new."""
        self._stop_if_asked()
        splitter = self.standby.settings.splitter
        sources = [(each, self._source(each.document_id)) for each in step]
        with_text = [source for each, source in sources if source is not None and not each.is_same_text]
        splits = []
        for source in with_text:
            try:
                splits.append(self.encoder.split(source.document, splitter))
            except InvalidInput as error:
                raise _refused(source, error) from error
        encoded = self.encoder.encode(splits, self.should_stop) if splits else []
        copies = [Copy(source, None) for each, source in sources if source is not None and each.is_same_text]
        for source, outcome in zip(with_text, encoded, strict=True):
            if isinstance(outcome, InvalidInput):
                raise _refused(source, outcome)
            copies.append(Copy(source, outcome.change))
        return copies

    def _source(self, document_id: str) -> StoredDocument | None:
        """None: deleted since it was listed; the next pass sees to that."""
        try:
            return self.rows.document(self.claimed.collection.key, document_id)
        except DocumentNotFound:
            return None

    def _stop_if_asked(self) -> None:
        if self.should_stop():
            raise Stopped


def _cost(change: Copy | str) -> int:
    if isinstance(change, str) or change.encoded is None:
        return CHARS_PER_CHANGE
    return max(CHARS_PER_CHANGE, len(change.source.document.text))


def steps(differing: Sequence[Differing], *, size_bytes: int = CHUNK_CHARS) -> Iterator[list[Differing]]:
    """In order, each of at most `size_bytes` of text that must be encoded, but at least one document."""
    step: list[Differing] = []
    n_bytes = 0
    for each in differing:
        cost = 0 if each.is_same_text else each.size_bytes
        if step and n_bytes + cost > size_bytes:
            yield step
            step, n_bytes = [], 0
        step.append(each)
        n_bytes += cost
    if step:
        yield step


def _refused(source: StoredDocument, error: InvalidInput) -> InvalidInput:
    return InvalidInput(
        f"the document {source.document.id!r} cannot be encoded so ({error}); nothing was switched: change "
        "or delete it, and re-index again"
    )
