"""Repair of a store: makes anew what can be made from the rest, and deletes nothing that cannot."""

import logging
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.domain import Collection
from app.domain.contents import content_hash
from app.domain.health import Checked, Fault, Remedy
from app.errors import BifocalError, Conflict
from app.storage.embedded import EmbeddedIndex
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder, Encoded
from indexer.heartbeat import Heartbeat

logger = logging.getLogger(__name__)

DOCUMENTS_AT_ONCE = 32
LEASE_S = 15.0


@dataclass(frozen=True, slots=True)
class Mended:
    what: str
    """What was done, or why it could not be."""
    where: str
    is_done: bool


class Mender:
    """Args:
    load_encoder: gives what encodes documents; only called when there are some to encode.
    """

    def __init__(
        self,
        rows: SqliteRows,
        index: EmbeddedIndex,
        directory: Path,
        load_encoder: Callable[[], DocumentEncoder],
    ) -> None:
        self._rows = rows
        self._index = index
        self._directory = directory
        self._load_encoder = load_encoder

    def mend(self, checks: Sequence[Checked]) -> list[Mended]:
        """Raises Conflict while a worker is running."""
        faults = [fault for check in checks for fault in check.faults if fault.remedy is not None]
        if not faults:
            return []
        with _only_writer(self._rows):
            return [done for remedy, how in self._ways().items() for done in self._apply(faults, remedy, how)]

    def _ways(self) -> Mapping[Remedy, Callable[[Fault], None]]:
        """In this order: what is made from rows is made when they are right."""
        return {
            Remedy.DOCUMENTS: self._rewrite,
            Remedy.ORPHANS: lambda _: self._rows.delete_orphans(),
            Remedy.METADATA: lambda fault: self._rows.index_metadata(fault.collection_key),
            Remedy.COUNTS: lambda _: self._rows.recount(),
            Remedy.JOB: lambda _: self._rows.release_silent_jobs(),
            Remedy.BASE: lambda fault: self._index.rebuild_base(self._collection(fault), fault.view),
            Remedy.WORDS: lambda fault: self._index.rebuild_words(self._collection(fault)),
            Remedy.FOLDER: self._delete_folder,
        }

    def _apply(
        self, faults: Sequence[Fault], remedy: Remedy, how: Callable[[Fault], None]
    ) -> Iterator[Mended]:
        for fault in _distinct(fault for fault in faults if fault.remedy == remedy):
            try:
                how(fault)
            except (BifocalError, OSError) as error:
                logger.warning("repair failed where=%s: %s", fault.where, error)
                yield Mended(f"could not {remedy}: {error}", fault.where, is_done=False)
            else:
                yield Mended(remedy.value, fault.where, is_done=True)

    def _collection(self, fault: Fault) -> Collection:
        return next(each for each in self._rows.collections() if each.key == fault.collection_key)

    def _rewrite(self, fault: Fault) -> None:
        """Of texts that are not what was stored, or were made by another model, nothing is made anew."""
        collection = self._collection(fault)
        encoder = self._load_encoder()
        if encoder.fingerprint != collection.fingerprint:
            raise Conflict(f"{collection.name!r} was made by another encoder than {encoder.model}")
        keys = iter(fault.keys)
        while block := list(islice(keys, DOCUMENTS_AT_ONCE)):
            self._rewrite_block(collection, encoder, block)

    def _rewrite_block(self, collection: Collection, encoder: DocumentEncoder, keys: list[int]) -> None:
        splitter = collection.settings.splitter
        splits = []
        for head in self._rows.documents_by_key(keys).values():
            document = self._rows.document(collection.key, head.id).document
            stored = self._rows.content_hashes(collection.key, [head.id])[head.id]
            if content_hash(document, splitter, fingerprint=collection.fingerprint) != stored:
                raise Conflict(f"the text of {head.id!r} is not what was stored")
            splits.append(encoder.split(document, splitter))
        encoded = encoder.encode(splits)
        for each in encoded:
            if not isinstance(each, Encoded):
                raise each
        self._rows.rewrite_documents(
            collection.key, [each.change for each in encoded if isinstance(each, Encoded)]
        )

    def _delete_folder(self, fault: Fault) -> None:
        folder = Path(fault.where)
        if self._directory not in folder.parents:
            raise ValueError(f"{folder} is not in {self._directory}")
        shutil.rmtree(folder)


@contextmanager
def _only_writer(rows: SqliteRows) -> Iterator[None]:
    """Hold the worker lease. Raises Conflict."""
    name = f"repair-{uuid.uuid4().hex[:8]}"
    if not rows.worker_heartbeat(name, lease_s=LEASE_S):
        raise Conflict("a worker is running, which a repair must not be beside: stop it, then repeat this")
    try:
        with Heartbeat(rows, name, lease_s=LEASE_S).beating():
            yield
    finally:
        rows.worker_release(name)


def _distinct(faults: Iterator[Fault]) -> list[Fault]:
    """One of each index or place; documents of one collection together, each once."""
    found: dict[tuple[Remedy | None, int, str, str], Fault] = {}
    for fault in faults:
        place = (
            fault.remedy,
            fault.collection_key,
            fault.view,
            fault.where if fault.remedy is Remedy.FOLDER else "",
        )
        before = found.get(place)
        keys = sorted({*fault.keys, *(before.keys if before else ())})
        found[place] = Fault(
            fault.what,
            fault.where,
            fault.remedy,
            collection_key=fault.collection_key,
            view=fault.view,
            keys=tuple(keys),
        )
    return list(found.values())
