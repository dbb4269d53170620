"""Which documents a filter lets through, remembered from one search to the next."""

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from app.filters import And, Filter, In, Not, Or
from app.storage.rows import Keys
from app.storage.sqlite.conditions import NO_KEYS, Conditions, satisfying, without
from app.storage.sqlite.connection import Database

REMEMBERED_BYTES = 128 * 2**20
"""Of document keys: sixteen answers of a million documents each, or many thousands of small ones."""

ENTRY_BYTES = 2_000
VALUE_BYTES = 200
"""About what an answer takes beside its keys, and what each value of `in` does."""

FRESH_LIMIT = 2_000
"""Documents written since an answer was made, up to which only these are looked at, 10 us each."""


@dataclass(frozen=True, slots=True)
class State:
    """Of a collection's documents and their metadata: any change to them gives another one.

    A new revision raises the largest key, a deletion alone lowers the number of documents, and other
    metadata under an old key have their own counter.
    """

    max_document_key: int
    n_documents: int
    metadata_version: int

    def is_after(self, other: "State") -> bool:
        if self.max_document_key == other.max_document_key and self.n_documents > other.n_documents:
            return False
        return (
            self.max_document_key >= other.max_document_key
            and self.metadata_version >= other.metadata_version
        )


@dataclass(frozen=True, slots=True)
class Answer:
    keys: Keys
    state: State
    sequence: int
    """Deletions up to this tombstone are accounted for."""


@dataclass(frozen=True, slots=True)
class Changes:
    """To the documents of a collection, while no metadata changed under an old key."""

    written: Sequence[tuple[int, str]]
    """Live documents with new keys: (key, metadata in JSON)."""
    dead: Keys


@dataclass(slots=True)
class Remembered:
    lock: Lock = field(default_factory=Lock)
    """Held while the answer is made, so that it is made once."""
    answer: Answer | None = None
    size_bytes: int = 0


class Memory:
    """The answers used last. Safe to use from any thread."""

    def __init__(self, *, max_bytes: int = REMEMBERED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._remembered: OrderedDict[tuple[int, Filter], Remembered] = OrderedDict()
        self._size_bytes = 0

    def keys(self, connection: sqlite3.Connection, collection_key: int, condition: Filter) -> Keys:
        """Of the live documents that satisfy it, ascending; the same array while it stays the same."""
        state = state_of(connection, collection_key)
        if state is None:
            return NO_KEYS
        remembered = self._of(collection_key, condition)
        with remembered.lock:
            before = remembered.answer
            if before is not None and before.state == state:
                return before.keys
            if before is not None and not state.is_after(before.state):  # another thread saw a newer one
                return _evaluated(connection, collection_key, condition)
            keys = None
            if before is not None:
                keys = _refreshed(connection, collection_key, condition, state, before)
            if keys is None:
                keys = _evaluated(connection, collection_key, condition)
            remembered.answer = Answer(keys, state, newest_sequence(connection))
        self._weigh(collection_key, condition, remembered, keys)
        return keys

    def _of(self, collection_key: int, condition: Filter) -> Remembered:
        with self._lock:
            remembered = self._remembered.setdefault((collection_key, condition), Remembered())
            self._remembered.move_to_end((collection_key, condition))
            return remembered

    def _weigh(self, collection_key: int, condition: Filter, remembered: Remembered, keys: Keys) -> None:
        """Forget those used least recently until what is left fits; the newest stays whatever its size."""
        with self._lock:
            if self._remembered.get((collection_key, condition)) is not remembered:
                return
            size_bytes = keys.nbytes + ENTRY_BYTES + VALUE_BYTES * _n_values(condition)
            self._size_bytes += size_bytes - remembered.size_bytes
            remembered.size_bytes = size_bytes
            while self._size_bytes > self._max_bytes and len(self._remembered) > 1:
                _, forgotten = self._remembered.popitem(last=False)
                self._size_bytes -= forgotten.size_bytes


class MatchingRows:
    _database: Database
    _memory: Memory

    def matching_documents(self, collection_key: int, condition: Filter) -> Keys:
        with self._database.read() as connection:
            return self._memory.keys(connection, collection_key, condition)


def state_of(connection: sqlite3.Connection, collection_key: int) -> State | None:
    """None for a collection that has been dropped."""
    row = connection.execute(
        "SELECT max_document_key, n_documents, metadata_version FROM collections "
        "WHERE key = ? AND dropped_at IS NULL",
        (collection_key,),
    ).fetchone()
    return None if row is None else State(*row)


def _evaluated(connection: sqlite3.Connection, collection_key: int, condition: Filter) -> Keys:
    keys = Conditions(connection, collection_key).keys(condition)
    keys.flags.writeable = False  # it is handed to every caller
    return keys


def _refreshed(
    connection: sqlite3.Connection, collection_key: int, condition: Filter, state: State, before: Answer
) -> Keys | None:
    changes = changes_since(connection, collection_key, state, before.state, before.sequence)
    if changes is None:
        return None
    keys = before.keys
    if np.isin(changes.dead, keys).any():
        keys = without(keys, changes.dead)
    new = satisfying(condition, changes.written)
    if new.size:
        keys = np.concatenate([keys, new])
    keys.flags.writeable = False
    return keys


def changes_since(
    connection: sqlite3.Connection, collection_key: int, now: State, before: State, sequence: int
) -> Changes | None:
    """What has become of the collection since a state and tombstone; None where that cannot be told, or is
    so much that reading everything anew is as good."""
    if now.metadata_version != before.metadata_version:
        return None
    written = connection.execute(
        "SELECT d.key, d.metadata FROM document_vectors v JOIN documents d ON d.key = v.key "
        "WHERE v.collection_key = ? AND v.key > ? LIMIT ?",
        (collection_key, before.max_document_key, FRESH_LIMIT + 1),
    ).fetchall()
    dead = _dead_keys(connection, collection_key, sequence)
    if dead is None or len(written) > FRESH_LIMIT:
        return None
    return Changes([tuple(row) for row in written], dead)


def _dead_keys(connection: sqlite3.Connection, collection_key: int, sequence: int) -> Keys | None:
    """Documents that died since; None where some are no longer recorded."""
    (pruned,) = connection.execute(
        "SELECT tombstones_pruned FROM collections WHERE key = ?", (collection_key,)
    ).fetchone()
    if sequence < pruned:
        return None
    rows = connection.execute(
        "SELECT document_key FROM tombstones WHERE collection_key = ? AND sequence > ?",
        (collection_key, sequence),
    )
    return np.array([key for (key,) in rows], np.int64)


def newest_sequence(connection: sqlite3.Connection) -> int:
    sequence: int = connection.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'tombstones'"
    ).fetchone()[0]
    return sequence


def _n_values(condition: Filter) -> int:
    match condition:
        case And(parts) | Or(parts):
            return sum(_n_values(part) for part in parts)
        case Not(part):
            return _n_values(part)
        case In(_, values):
            return len(values)
        case _:
            return 1
