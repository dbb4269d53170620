"""The word indexes of all collections."""

import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.storage.index import Candidates
from app.storage.lexical.committed import Allowed
from app.storage.lexical.reader import LexicalReader
from app.storage.lexical.writer import LexicalWriter
from app.storage.rows import Rows

FOLDER = "words"

MAX_READERS = 256
MAX_WRITERS = 8
"""Kept open. A writer has two threads and up to 64 MB; the rows have what one that is closed had waiting."""

Part = TypeVar("Part")


class LexicalIndex:
    """Safe to call from any thread; `apply`, `maintain` and `drop` only from the one writer's process."""

    def __init__(self, rows: Rows, directory: Path) -> None:
        self._rows = rows
        self._directory = directory
        self._lock = threading.Lock()
        self._readers: OrderedDict[int, LexicalReader] = OrderedDict()
        self._writers: OrderedDict[int, LexicalWriter] = OrderedDict()
        """Both: least recently used first."""
        self._repaired: set[int] = set()

    def match(
        self, collection_key: int, text: str, *, depth: int, allowed: Allowed | None = None
    ) -> Candidates:
        return self._reader(collection_key).match(text, depth=depth, allowed=allowed)

    def apply(self, collection_key: int) -> None:
        """Raises StorageFull, StorageError."""
        self._writer(collection_key).apply()

    def repair(self, collection_key: int) -> None:
        """Once per process: bring the files up to date after whatever ended the process before.

        All of it: had processes ended before their commit again and again, bases published meanwhile would
        let the rows forget deletions that the files lack, and readers would refuse them.
        """
        if collection_key not in self._repaired:
            self.commit(collection_key)
            self._repaired.add(collection_key)

    def commit(self, collection_key: int) -> None:
        """Leave nothing waiting. Raises as `apply`."""
        self._writer(collection_key).commit()

    def rebuild(self, collection_key: int) -> None:
        """From the rows, whatever the files are like. Raises as `apply`."""
        self._writer(collection_key).rebuild()

    def drop(self, collection_key: int) -> None:
        with self._lock:
            self._readers.pop(collection_key, None)
            writer = self._writers.pop(collection_key, None)
        if writer is not None:
            writer.close()
        shutil.rmtree(self._folder(collection_key), ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            writers = list(self._writers.values())
            self._writers.clear()
            self._readers.clear()
        for writer in writers:
            writer.close()

    def _reader(self, collection_key: int) -> LexicalReader:
        with self._lock:
            reader = _kept(
                self._readers,
                collection_key,
                lambda: LexicalReader(self._folder(collection_key), self._rows, collection_key),
            )
            if len(self._readers) > MAX_READERS:
                self._readers.popitem(last=False)
            return reader

    def _writer(self, collection_key: int) -> LexicalWriter:
        with self._lock:
            writer = _kept(
                self._writers,
                collection_key,
                lambda: LexicalWriter(self._folder(collection_key), self._rows, collection_key),
            )
            idle = self._writers.popitem(last=False)[1] if len(self._writers) > MAX_WRITERS else None
        if idle is not None:
            idle.close()
        return writer

    def _folder(self, collection_key: int) -> Path:
        return self._directory / str(collection_key) / FOLDER


def _kept(parts: OrderedDict[int, Part], collection_key: int, make: Callable[[], Part]) -> Part:
    """The one in use, or a new one; it is the most recently used afterwards."""
    if collection_key not in parts:
        parts[collection_key] = make()
    parts.move_to_end(collection_key)
    return parts[collection_key]
