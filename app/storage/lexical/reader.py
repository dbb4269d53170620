"""Searches one collection's words: Tantivy's last commit and the rows written since, always current."""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tantivy

from app.errors import StorageDamaged
from app.storage.index import Candidates
from app.storage.lexical.analysis import query_terms
from app.storage.lexical.bm25 import inverse_document_frequency
from app.storage.lexical.committed import Allowed, Base, contains
from app.storage.lexical.files import CURRENT, META, current_folder, open_index, read_position, verify_files
from app.storage.lexical.tail import Matches, TailPassage, match_tail, tail_passages
from app.storage.rows import Keys, Rows, TextRow

MAX_QUERY_CHARS = 10_000
MAX_QUERY_TERMS = 64
"""Of a longer query, the beginning is read and its most telling words are looked up: those with the
greatest weight in BM25. The time of a search grows with every word."""

MAX_TAIL_PASSAGES = 5_000
"""More than `LexicalWriter.apply` ever leaves behind; what is beyond waits for it."""

FileStamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The collection at one moment."""

    base: Base | None
    tail: tuple[TailPassage, ...]
    """Live passages that the base does not have, ascending by key."""
    dead: Keys
    """Ascending; some of the base's passages are among them."""
    is_complete: bool
    """False: the tail would have been too long, and what is beyond is missing."""

    @property
    def mean_terms(self) -> float:
        mean = self.base and self.base.mean_terms
        return mean or sum(passage.n_terms for passage in self.tail) / max(1, len(self.tail)) or 1.0


class LexicalReader:
    """Safe to use from any thread and beside a `LexicalWriter` in another process."""

    def __init__(self, directory: Path, rows: Rows, collection_key: int) -> None:
        self._directory = directory
        self._rows = rows
        self._collection_key = collection_key
        self._lock = threading.Lock()
        self._stamp: object = None
        self._folder: Path | None = None
        self._index: tantivy.Index | None = None
        self._snapshot = Snapshot(None, (), np.empty(0, np.int64), is_complete=True)

    def match(self, text: str, *, depth: int, allowed: Allowed | None = None) -> Candidates:
        """The `depth` passages of greatest BM25 score with any word of `text`; fewer if fewer have one.

        Args:
            text: anything; nothing in it is an operator. Without a word it matches nothing.
            allowed: what else there is, is treated as if it were not there.

        Raises:
            StorageDamaged: the files are not what was written, and the worker has not replaced them yet.
        """
        snapshot = self._current()
        named = query_terms(text[:MAX_QUERY_CHARS])
        base, tail = snapshot.base, snapshot.tail
        n_base = base.n_passages if base else 0
        frequencies = base.frequencies(named) if base else dict.fromkeys(named, 0)
        terms = _most_telling(named, frequencies, n_base)
        found = [
            _restrict(
                match_tail(
                    tail, terms, base_frequencies=frequencies, n_base=n_base, mean_terms=snapshot.mean_terms
                ),
                allowed,
            )
        ]
        known = {term: n for term, n in terms.items() if frequencies[term]}
        if base and known and depth:
            found.append(base.match(known, depth=depth, dead=snapshot.dead, allowed=allowed))
        return _ranked(found, depth=depth, snapshot=snapshot)

    def _current(self) -> Snapshot:
        with self._lock:
            stamp = (self._rows.data_version(), _stamp(self._directory / CURRENT), self._meta_stamp())
            if stamp != self._stamp:
                self._snapshot = self._refreshed()
                self._stamp = stamp
            return self._snapshot

    def _meta_stamp(self) -> FileStamp:
        return None if self._folder is None else _stamp(self._folder / META)

    def _refreshed(self) -> Snapshot:
        """Base first, then texts, then tombstones: what moves in between is found twice rather than never."""
        base = self._reopened_base()
        key = base.position.key if base else 0
        before = self._snapshot
        goes_on = before.base is None or key >= before.base.position.key
        tail = [passage for passage in before.tail if passage.key > key] if goes_on else []
        rows = self._rows_after(tail[-1].key if tail else key, limit=MAX_TAIL_PASSAGES - len(tail) + 1)
        tail += tail_passages(rows)
        sequence = base.position.sequence if base else 0
        dead = self._rows.tombstones_after(self._collection_key, "passages", sequence)
        if not dead.is_complete:
            raise StorageDamaged(f"the word index in {self._directory} is too old; it will be built anew")
        dead_keys = np.sort(dead.keys)
        live = ~contains(dead_keys, np.array([passage.key for passage in tail], np.int64))
        tail = list(itertools.compress(tail, live))
        return Snapshot(
            base, tuple(tail[:MAX_TAIL_PASSAGES]), dead_keys, is_complete=len(tail) <= MAX_TAIL_PASSAGES
        )

    def _rows_after(self, key: int, *, limit: int) -> list[TextRow]:
        blocks = self._rows.texts_after(self._collection_key, key)
        return list(itertools.islice(itertools.chain.from_iterable(blocks), limit))

    def _reopened_base(self) -> Base | None:
        folder = current_folder(self._directory)
        if folder is None:
            self._folder = self._index = None
            return None
        if self._index is None or folder != self._folder:
            self._index = open_verified(folder)
            self._folder = folder
        try:
            self._index.reload()
        except (OSError, ValueError) as error:
            self._index = None
            raise StorageDamaged(f"the word index in {folder} cannot be read: {error}") from error
        searcher = self._index.searcher()
        return Base(searcher, self._index.schema, read_position(searcher, self._index.schema))


def open_verified(folder: Path) -> tantivy.Index:
    """The worker may replace files meanwhile; then look again. Raises StorageDamaged."""
    while True:
        before = _stamp(folder / META)
        try:
            verify_files(folder)
            return open_index(folder)
        except StorageDamaged as error:
            if _stamp(folder / META) == before:
                raise StorageDamaged(
                    "the word index is damaged and waits for the worker to build it anew; "
                    f"dense search works meanwhile: {error}"
                ) from error


def _stamp(path: Path) -> FileStamp:
    """Changes whenever the file is replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _most_telling(terms: Mapping[str, int], frequencies: Mapping[str, int], n_base: int) -> Mapping[str, int]:
    if len(terms) <= MAX_QUERY_TERMS:
        return terms
    weights = {t: n * inverse_document_frequency(frequencies[t], n_base) for t, n in terms.items()}
    present = [term for term in terms if frequencies[term]] or list(terms)
    best = sorted(present, key=lambda term: -weights[term])[:MAX_QUERY_TERMS]
    return {term: terms[term] for term in best}


def _restrict(matches: Matches, allowed: Allowed | None) -> Matches:
    if allowed is None:
        return matches
    kept = allowed.flags(matches)
    return Matches(matches.keys[kept], matches.document_keys[kept], matches.scores[kept])


def _ranked(found: list[Matches], *, depth: int, snapshot: Snapshot) -> Candidates:
    """Best first, ties by key."""
    keys = np.concatenate([matches.keys for matches in found])
    document_keys = np.concatenate([matches.document_keys for matches in found])
    scores = np.concatenate([matches.scores for matches in found])
    order = np.lexsort((keys, -scores))[:depth]
    return Candidates(
        keys=keys[order],
        document_keys=document_keys[order],
        scores=scores[order],
        generation=snapshot.base.position.key if snapshot.base else 0,
        is_exact=snapshot.is_complete,
    )
