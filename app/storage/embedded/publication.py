"""Putting a new base where readers find it, and taking away what nobody will open again.

A base is made in a folder whose name begins with a dot, which gets its final name when all of its files are
on disk; then one row makes it current. Whatever interrupts this leaves at most a folder that is in no row:
the writer removes it the next time.
"""

import dataclasses
import hashlib
import json
import logging
import re
import shutil
import time
from pathlib import Path

from app.domain import View
from app.errors import CollectionNotFound
from app.storage.embedded.bases import Base, Manifest, folder_of, open_base, open_quantiser
from app.storage.embedded.building import Progress, build, sync
from app.storage.embedded.training import Quantiser
from app.storage.failed_writes import failed_writes
from app.storage.rows import Generation, Rows

logger = logging.getLogger(__name__)

UNFINISHED = ".unfinished-"


class Publisher:
    """Used by the one writer."""

    def __init__(self, rows: Rows, directory: Path) -> None:
        self._rows = rows
        self._directory = directory

    def publish(
        self, collection_key: int, view: View, *, n_expected: int, exact_limit: int, progress: Progress
    ) -> Base | None:
        """Build a base of what is live now and make it current; None if the collection is dropped meanwhile.

        Raises StorageFull, StorageReadOnly, StorageError; then the base before stays current.
        """
        with failed_writes(f"a new index base cannot be written in {self._directory}"):
            started_at = time.monotonic()
            number = self._next_number(collection_key, view)
            max_key = self._rows.max_key(collection_key, view)
            unfinished = self._parent(collection_key) / f"{UNFINISHED}{view}-{number}"
            unfinished.mkdir(parents=True)
            try:
                manifest = build(
                    unfinished,
                    self._rows,
                    collection_key,
                    view,
                    max_key=max_key,
                    n_expected=n_expected,
                    exact_limit=exact_limit,
                    quantiser=self._quantiser(collection_key, view),
                    progress=progress,
                )
                generation = Generation(
                    collection_key=collection_key,
                    view=view,
                    number=number,
                    max_key=max_key,
                    n_vectors=manifest.n_vectors,
                    checksum=hashlib.sha256(manifest.to_bytes()).hexdigest(),
                    details=_details(manifest, seconds=time.monotonic() - started_at),
                )
                folder = folder_of(self._directory, generation)
                unfinished.rename(folder)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
            sync(folder.parent)
            return self._make_current(generation, folder)

    def clean(self, collection_key: int, view: View) -> None:
        """Remove what was left unfinished and what is older than the current base.

        A newer one is in no row, or was retracted; it stays until there is a newer current one, so that its
        number is not used again.
        """
        current = self._rows.generation(collection_key, view)
        for folder in self._folders(collection_key, view):
            is_unfinished = folder.name.startswith(UNFINISHED)
            is_old = current is not None and _number(folder) < current.number
            if is_unfinished or is_old:
                shutil.rmtree(folder, ignore_errors=True)

    def _make_current(self, generation: Generation, folder: Path) -> Base | None:
        try:
            base = open_base(folder, generation)
            self._rows.publish_generation(generation)
        except CollectionNotFound:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        logger.info("published base %d of %s: %s", generation.number, generation.view, generation.details)
        self.clean(generation.collection_key, generation.view)
        return base

    def _quantiser(self, collection_key: int, view: View) -> Quantiser | None:
        current = self._rows.generation(collection_key, view)
        return None if current is None else open_quantiser(folder_of(self._directory, current), current)

    def _parent(self, collection_key: int) -> Path:
        return self._directory / str(collection_key)

    def _folders(self, collection_key: int, view: View) -> list[Path]:
        parent = self._parent(collection_key)
        name = re.compile(rf"({re.escape(UNFINISHED)})?{view}-\d+")
        return [path for path in parent.glob("*") if name.fullmatch(path.name)] if parent.exists() else []

    def _next_number(self, collection_key: int, view: View) -> int:
        current = self._rows.generation(collection_key, view)
        numbers = [_number(folder) for folder in self._folders(collection_key, view)]
        return max([0, *numbers] if current is None else [current.number, *numbers]) + 1


def _number(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _details(manifest: Manifest, *, seconds: float) -> str:
    """JSON, for people and statistics."""
    details: dict[str, object] = {"kind": manifest.kind, "seconds": round(seconds, 3)}
    if manifest.approximation is not None:
        details |= dataclasses.asdict(manifest.approximation)
    details["size_bytes"] = {name: file.size_bytes for name, file in manifest.files.items()}
    return json.dumps(details)
