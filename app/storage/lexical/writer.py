"""Follows the rows into Tantivy's files. Used by the one worker process."""

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import tantivy
from tantivy import Document, IndexWriter

from app.errors import StorageDamaged, StorageError, StorageFull
from app.storage.free_space import is_disk_full
from app.storage.lexical.analysis import passage_terms
from app.storage.lexical.files import (
    Position,
    create_index,
    current_folder,
    next_folder,
    open_index,
    publish_folder,
    read_position,
    remove_other_folders,
    verify_files,
    write_position,
)
from app.storage.rows import Rows, TextRow

logger = logging.getLogger(__name__)

COMMIT_AFTER = 500
"""Changes that wait for a commit. Until then readers take them from the rows: a commit flushes a dozen files,
60-90 ms where flushing one takes 5 ms, too much for a single document."""

HEAP_BYTES = 64_000_000


class LexicalWriter:
    """The word index of one collection. Whatever is lost or damaged is taken from the rows again.

    Safe to use from any thread; at most one process has an open one.
    """

    def __init__(self, directory: Path, rows: Rows, collection_key: int) -> None:
        self._directory = directory
        self._rows = rows
        self._collection_key = collection_key
        self._writer: IndexWriter | None = None
        self._position = Position()
        self._n_waiting = 0
        self._lock = threading.Lock()

    def apply(self) -> None:
        """Follow the rows. Afterwards at most `COMMIT_AFTER` changes are not in the files yet.

        Raises:
            StorageError: the files cannot be written; the next call starts from what is on disk.
        """
        self._write(commit_after=COMMIT_AFTER)

    def commit(self) -> None:
        """Follow the rows and leave nothing waiting. Raises as `apply`."""
        self._write(commit_after=1)

    def rebuild(self) -> None:
        """Fill new files from the rows, whatever those in use are like. Raises as `apply`."""
        self.close()
        with self._lock, self._translated():
            self._directory.mkdir(parents=True, exist_ok=True)
            self._start_anew("a repair asked for it")
            self._follow(commit_after=1)

    def close(self) -> None:
        """What waits for a commit is dropped: the rows have it. Returns when nothing writes to the files."""
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(ValueError):  # a merge that failed is done again
                    writer.wait_merging_threads()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, *, commit_after: int) -> None:
        with self._lock, self._translated():
            self._follow(commit_after=commit_after)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            self._writer = None
            kind = StorageFull if is_full(error, self._directory) else StorageError
            raise kind(f"the word index in {self._directory} cannot be written: {error}") from error

    def _follow(self, *, commit_after: int) -> None:
        if self._writer is None and not self._rows.max_key(self._collection_key, "passages"):
            return  # nothing was ever written, or the collection is gone
        writer = self._writer or self._open()
        if not self._add_changes(writer):
            self._writer = None
            writer = self._start_anew("the rows no longer record all deletions since its last commit")
        if self._n_waiting >= commit_after:
            self._commit(writer)

    def _open(self) -> IndexWriter:
        self._directory.mkdir(parents=True, exist_ok=True)
        folder = current_folder(self._directory)
        if folder is None:
            is_new = not any(path.is_dir() for path in self._directory.iterdir())
            return self._start_anew(None if is_new else "this version of the analysis has filled none")
        try:
            verify_files(folder)
            index = open_index(folder)
        except StorageDamaged as error:
            return self._start_anew(str(error))
        remove_other_folders(folder)
        self._position = read_position(index.searcher(), index.schema)
        return self._use(index)

    def _use(self, index: tantivy.Index) -> IndexWriter:
        # One thread: passages stay in the order of their keys, which settles ties cheaply.
        self._writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
        self._n_waiting = 0
        return self._writer

    def _start_anew(self, reason: str | None) -> IndexWriter:
        """Fill a new folder beside the one in use, and switch to it when it is complete.

        `reason` says why the one in use will not do; None: there was none.
        """
        folder = next_folder(self._directory)
        if reason is not None:
            n_rows = self._rows.collection_stats(self._collection_key).n_passages
            logger.warning("building a word index of %d passages in %s: %s", n_rows, folder, reason)
        self._position = Position()
        writer = self._use(create_index(folder))
        self._add_changes(writer)
        if self._n_waiting >= COMMIT_AFTER:
            self._commit(writer)
        publish_folder(folder)
        return writer

    def _add_changes(self, writer: IndexWriter) -> bool:
        """False: tombstones are missing.

        Texts first: a passage that dies in between is then deleted by its tombstone. Passages above the
        position are never in the files already, because the position changes in the same commit.
        """
        for block in self._rows.texts_after(self._collection_key, self._position.key):
            self._add(writer, block)
        dead = self._rows.tombstones_after(self._collection_key, "passages", self._position.sequence)
        for key in dead.keys.tolist():
            writer.delete_documents_by_term("key", key)
        self._n_waiting += len(dead.keys)
        self._position = replace(self._position, sequence=dead.sequence)
        return dead.is_complete

    def _add(self, writer: IndexWriter, rows: Iterable[TextRow]) -> None:
        for row in rows:
            terms = passage_terms(row.title, row.text)
            document = Document()
            document.add_integer("key", row.key)
            document.add_integer("document_key", row.document_key)
            document.add_text("terms", " ".join(terms))
            writer.add_document(document)
            self._n_waiting += 1
            self._position = Position(
                key=row.key,
                sequence=self._position.sequence,
                n_added=self._position.n_added + 1,
                n_terms=self._position.n_terms + len(terms),
            )

    def _commit(self, writer: IndexWriter) -> None:
        write_position(writer, self._position)
        writer.commit()
        self._n_waiting = 0


def is_full(error: OSError | ValueError, directory: Path) -> bool:
    """Tantivy reports errors of the system as text, and those of its threads without their reason."""
    is_said = getattr(error, "errno", None) == errno.ENOSPC or os.strerror(errno.ENOSPC) in str(error)
    return is_said or is_disk_full(directory)
