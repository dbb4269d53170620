"""Keeping the snapshot of one (collection, view) up to date with the rows."""

import logging
from dataclasses import replace
from pathlib import Path
from threading import Lock, Thread

from app.domain import View
from app.errors import StorageDamaged, StorageError
from app.storage.embedded.bases import Base, folder_of, open_base
from app.storage.embedded.snapshots import Snapshot
from app.storage.rows import Generation, Rows

logger = logging.getLogger(__name__)

READS = 5
"""Attempts to read a state of the rows that nobody changed meanwhile; the last one is taken as it is, and
may lack the newest revision of a document that was replaced just then. The next search looks again."""


class Follower:
    """Gives searches the newest snapshot; the first search after a commit makes it, from what is new.

    A new base is opened beside the searches, which keep theirs and a longer tail until it is ready.
    """

    def __init__(self, rows: Rows, directory: Path, collection_key: int, view: View) -> None:
        self._rows = rows
        self._directory = directory
        self._collection_key = collection_key
        self._view = view
        self._lock = Lock()
        self._snapshot: Snapshot | None = None
        self._opened: Base | None = None
        self._opening: Thread | None = None
        self._damaged: str | None = None
        """Checksum of a generation found damaged, in case it could not be retracted."""

    @property
    def latest(self) -> Snapshot | None:
        """The one made last; it may be out of date."""
        return self._snapshot

    @property
    def resident_bytes(self) -> int:
        return 0 if self._snapshot is None else self._snapshot.resident_bytes

    def current(self) -> Snapshot:
        """Everything that was committed before the call is in it."""
        snapshot = self._snapshot
        if snapshot is not None and not self._is_stale(snapshot, self._rows.data_version()):
            return snapshot
        with self._lock:  # waiting is no loss: who holds it makes the snapshot that is wanted here
            self._snapshot = self._advanced()
            return self._snapshot

    def adopt(self, base: Base) -> None:
        """Use this newly published base from the next call on."""
        self._opened = base

    def close(self) -> None:
        if self._opening is not None:
            self._opening.join()

    def _advanced(self) -> Snapshot:
        snapshot = self._snapshot
        version = self._rows.data_version()
        for _ in range(READS):
            if snapshot is not None and not self._is_stale(snapshot, version):
                return snapshot
            snapshot = self._after(snapshot, version)
            version = self._rows.data_version()
        assert snapshot is not None
        return snapshot

    def _is_stale(self, snapshot: Snapshot, version: int) -> bool:
        return snapshot.version != version or self._opened is not None

    def _after(self, snapshot: Snapshot | None, version: int) -> Snapshot:
        generation = self._generation()
        opened, self._opened = self._opened, None
        held = None if snapshot is None or snapshot.base is None else snapshot.base.generation
        if snapshot is not None and _checksum(generation) == _checksum(held):
            snapshot = replace(snapshot, version=version)
        elif generation is None:
            snapshot = Snapshot.of(None, version)
        elif opened is not None and opened.generation.checksum == generation.checksum:
            snapshot = Snapshot.of(opened, version)
        elif snapshot is None:
            snapshot = Snapshot.of(self._open(generation), version)
        else:
            self._open_beside(generation)
            snapshot = replace(snapshot, version=version)
        return self._caught_up(snapshot)

    def _caught_up(self, snapshot: Snapshot) -> Snapshot:
        """With what the rows have beyond it.

        Vectors before tombstones: what is deleted between the two reads must not be found any more.
        """
        for block in self._rows.vectors_after(self._collection_key, self._view, snapshot.max_key):
            snapshot = snapshot.with_vectors(block)
        tombstones = self._rows.tombstones_after(self._collection_key, self._view, snapshot.sequence)
        if not tombstones.is_complete:
            return self._caught_up(Snapshot.of(self._open(self._generation()), snapshot.version))
        return snapshot.without(tombstones.keys, sequence=tombstones.sequence)

    def _generation(self) -> Generation | None:
        generation = self._rows.generation(self._collection_key, self._view)
        return None if _checksum(generation) == self._damaged else generation

    def _open(self, generation: Generation | None) -> Base | None:
        """None where there is no base that can be read: then all vectors come from the rows."""
        while generation is not None:
            try:
                return open_base(folder_of(self._directory, generation), generation)
            except StorageDamaged as error:
                # A newer one may have been published and this one's folder removed.
                newest = self._generation()
                if _checksum(newest) == _checksum(generation):
                    self._retract(generation, error)
                    return None
                generation = newest
        return None

    def _retract(self, generation: Generation, reason: StorageDamaged) -> None:
        logger.error(
            "base %d of %s in collection %d is damaged; searching the rows until it is rebuilt: %s",
            generation.number,
            self._view,
            self._collection_key,
            reason,
        )
        self._damaged = generation.checksum
        try:
            self._rows.retract_generation(self._collection_key, self._view, generation.number)
        except StorageError as error:
            logger.warning("the damaged base could not be retracted: %s", error)

    def _open_beside(self, generation: Generation) -> None:
        if self._opening is not None and self._opening.is_alive():
            return
        self._opening = Thread(target=self._open_and_keep, args=(generation,), name="open-base", daemon=True)
        self._opening.start()

    def _open_and_keep(self, generation: Generation) -> None:
        try:
            self._opened = self._open(generation)
        except StorageError as error:
            logger.warning("base %d of %s could not be opened: %s", generation.number, self._view, error)


def _checksum(generation: Generation | None) -> str | None:
    return None if generation is None else generation.checksum
