"""Fields of the metadata index in memory: the values, and the documents that hold each."""

import bisect
import sqlite3
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from app.filters import Kind
from app.storage.rows import Keys
from app.storage.sqlite.conditions import ascending
from app.storage.sqlite.matching import Changes, State, changes_since, newest_sequence

REMEMBERED_BYTES = 128 * 2**20
"""Of columns; one that takes more than half of it is read anew each time."""

VALUE_BYTES = 100
"""About what each value takes beside its documents."""

BLOCK_VALUES = 10_000
"""Values whose documents are read at once."""

Scalar = bool | int | float | str
NO_CHANGES = Changes([], np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Column:
    """All values of a field but moments, by kind and value, as they were at one moment."""

    kinds: Sequence[int]
    values: Sequence[Scalar]
    starts: Keys
    """(len(values),), where the documents of each begin in `keys`; each has some."""
    keys: Keys
    """Of documents, one value after the other."""
    is_single: bool
    """No document holds more than one value."""
    state: State
    sequence: int
    """Deletions up to this tombstone are accounted for."""

    @property
    def size_bytes(self) -> int:
        return self.keys.nbytes + VALUE_BYTES * len(self.values)

    def counts(self, is_counted: NDArray[np.bool_]) -> Keys:
        """(len(values),), the documents of each that are flagged in (len(keys),)."""
        if not self.values:
            return np.zeros(0, np.int64)
        return np.add.reduceat(is_counted, self.starts, dtype=np.int64)

    def place(self, kind: int, value: Scalar) -> int | None:
        """Of this value; None where no document held it."""
        wanted = (kind, value)
        place = bisect.bisect_left(
            range(len(self.values)), wanted, key=lambda i: (self.kinds[i], self.values[i])
        )
        is_here = place < len(self.values) and (self.kinds[place], self.values[place]) == wanted
        return place if is_here else None


@dataclass(slots=True)
class Remembered:
    lock: Lock = field(default_factory=Lock)
    """Held while the column is read, so that it is read once."""
    column: Column | None = None


class Columns:
    """Those used last, by key of the field. Safe to use from any thread."""

    def __init__(self, *, max_bytes: int = REMEMBERED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._remembered: OrderedDict[int, Remembered] = OrderedDict()

    def column(
        self, connection: sqlite3.Connection, collection_key: int, field_key: int, state: State
    ) -> tuple[Column, Changes]:
        """As it was at some moment, and what was written and deleted since."""
        with self._lock:
            remembered = self._remembered.setdefault(field_key, Remembered())
            self._remembered.move_to_end(field_key)
        with remembered.lock:
            column = remembered.column
            if column is not None:
                changes = _changes(connection, collection_key, column, state)
                if changes is not None:
                    return column, changes
            read = _read(connection, field_key, state)
            if column is None or state.is_after(column.state):
                remembered.column = read
        self._forget(field_key, read)
        return read, NO_CHANGES

    def _forget(self, field_key: int, read: Column) -> None:
        with self._lock:
            if read.size_bytes > self._max_bytes // 2:
                self._remembered.pop(field_key, None)
            while sum(map(_size_bytes, self._remembered.values())) > self._max_bytes:
                self._remembered.popitem(last=False)


def _size_bytes(remembered: Remembered) -> int:
    return 0 if remembered.column is None else remembered.column.size_bytes


def _changes(
    connection: sqlite3.Connection, collection_key: int, column: Column, state: State
) -> Changes | None:
    if column.state == state:
        return NO_CHANGES
    if not state.is_after(column.state):
        return None
    return changes_since(connection, collection_key, state, column.state, column.sequence)


def _read(connection: sqlite3.Connection, field_key: int, state: State) -> Column:
    kinds: list[int] = []
    values: list[Scalar] = []
    n_keys: list[int] = []
    keys = [np.empty(0, np.int64)]
    rows = connection.cursor()
    rows.row_factory = None
    rows.execute(
        "SELECT kind, value, count(*), group_concat(document_key) FROM metadata_values "
        "WHERE field_key = ? AND kind < ? GROUP BY kind, value",
        (field_key, Kind.MOMENT),
    )
    while block := rows.fetchmany(BLOCK_VALUES):
        kinds += [kind for kind, _, _, _ in block]
        values += [bool(value) if kind == Kind.BOOLEAN else value for kind, value, _, _ in block]
        n_keys += [n for _, _, n, _ in block]
        keys.append(np.fromstring(",".join(text for _, _, _, text in block), np.int64, sep=","))
    all_keys = np.concatenate(keys)
    return Column(
        kinds,
        values,
        starts=np.cumsum([0, *n_keys[:-1]]) if n_keys else np.empty(0, np.int64),
        keys=all_keys,
        is_single=len(ascending(all_keys)) == len(all_keys),
        state=state,
        sequence=newest_sequence(connection),
    )
