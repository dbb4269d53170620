"""Evaluating a filter: a range of the metadata index for each condition, then sets of document keys."""

import itertools
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from app.filters import And, Eq, Exists, Filter, In, Kind, Not, Or, Range, matches
from app.storage.rows import Keys
from app.storage.sqlite.metadata import field_key
from app.storage.sqlite.values import from_json

FEW = 1_000
"""So few documents are looked at one by one: about 10 us each, where a condition that half of a million
documents satisfy takes 100 ms."""

SQL_VALUES = 500
"""Values of `in` that one statement names."""

SPARSE = 20
"""Keys of a span this many times as long as they are many are sorted; denser ones are marked in it."""

NO_KEYS = np.empty(0, np.int64)

Clause = tuple[str, Sequence[object]]
"""Of WHERE over `metadata_values`, made of constants, with its parameters."""


class Conditions:
    """Over the live documents of one collection, within one snapshot."""

    def __init__(self, connection: sqlite3.Connection, collection_key: int) -> None:
        self._connection = connection
        self._collection_key = collection_key
        self._live: Keys | None = None

    def keys(self, condition: Filter) -> Keys:
        """Of the documents that satisfy it, ascending."""
        match condition:
            case And(parts):
                return self._all_of(parts)
            case Or(parts):
                return ascending(np.concatenate([self.keys(part) for part in parts]))
            case Not(part):
                return without(self._live_keys(), self.keys(part))
            case _:
                return self._holding(condition)

    def _all_of(self, parts: Sequence[Filter]) -> Keys:
        """Beginning with a condition that few satisfy, if there is one; `not` takes away from the others."""
        few = next((part for part in parts if self._is_rare(part)), None)
        if few is not None:
            rest = And(tuple(part for part in parts if part is not few))
            return self._satisfying(rest, self.keys(few))
        wanted = [self.keys(part) for part in parts if not isinstance(part, Not)]
        keys = wanted[0] if wanted else self._live_keys()
        for other in wanted[1:]:
            keys = within(keys, other)
        for part in parts:
            if isinstance(part, Not):
                keys = without(keys, self.keys(part.part))
        return keys

    def _is_rare(self, part: Filter) -> bool:
        if isinstance(part, And | Or | Not):
            return False
        n_rows = 0
        for clause, parameters in self._clauses(part):
            n_rows += self._connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM metadata_values WHERE {clause} LIMIT ?)",  # noqa: S608
                (*parameters, FEW + 1),
            ).fetchone()[0]
            if n_rows > FEW:
                return False
        return True

    def _satisfying(self, condition: Filter, keys: Keys) -> Keys:
        """Those of these few documents."""
        found = self._connection.execute(
            "SELECT key, metadata FROM documents WHERE key IN (SELECT value FROM json_each(?))",
            (json.dumps(keys.tolist()),),
        )
        return satisfying(condition, found)

    def _holding(self, condition: Eq | In | Range | Exists) -> Keys:
        query = "SELECT group_concat(document_key) FROM metadata_values WHERE "
        found = [
            _keys(self._connection, query + clause, values) for clause, values in self._clauses(condition)
        ]
        return ascending(np.concatenate([NO_KEYS, *found]))

    def _live_keys(self) -> Keys:
        if self._live is None:
            query = "SELECT group_concat(key) FROM document_vectors WHERE collection_key = ?"
            self._live = ascending(_keys(self._connection, query, (self._collection_key,)))
        return self._live

    def _clauses(self, condition: Eq | In | Range | Exists) -> Iterable[Clause]:
        """Which together select what holds the condition; a document may be selected more than once."""
        field = field_key(self._connection, self._collection_key, condition.field)
        if field is None:
            return
        match condition:
            case Eq(_, value):
                yield "field_key = ? AND kind = ? AND value = ?", (field, value.kind, value.value)
            case In():
                yield from _any_of(field, condition)
            case Range():
                yield _between(field, condition)
            case Exists():
                yield "field_key = ? AND kind < ?", (field, Kind.MOMENT)


def satisfying(condition: Filter, documents: Iterable[tuple[int, str]]) -> Keys:
    """`documents` are (key, metadata in JSON)."""
    keys = [key for key, metadata in documents if matches(condition, from_json(metadata))]
    return np.array(sorted(keys), np.int64)


def within(keys: Keys, others: Keys) -> Keys:
    """Those that are among the others too; both are ascending."""
    if len(keys) > len(others):
        keys, others = others, keys
    return keys[np.isin(keys, others, assume_unique=True)]


def without(keys: Keys, others: Keys) -> Keys:
    return keys[np.isin(keys, others, assume_unique=True, invert=True)]


def _any_of(field: int, condition: In) -> Iterable[Clause]:
    by_kind = sorted(condition.values, key=lambda value: value.kind)
    for kind, values in itertools.groupby(by_kind, key=lambda value: value.kind):
        while block := [value.value for value in itertools.islice(values, SQL_VALUES)]:
            marks = ", ".join("?" * len(block))
            yield f"field_key = ? AND kind = ? AND value IN ({marks})", (field, kind, *block)


def _between(field: int, limits: Range) -> Clause:
    clause, parameters = "field_key = ? AND kind = ?", []
    if limits.low is not None:
        clause += " AND value >= ?" if limits.low.is_included else " AND value > ?"
        parameters.append(limits.low.value)
    if limits.high is not None:
        clause += " AND value <= ?" if limits.high.is_included else " AND value < ?"
        parameters.append(limits.high.value)
    return clause, (field, parameters[0].kind, *(limit.value for limit in parameters))


def _keys(connection: sqlite3.Connection, query: str, parameters: Sequence[object]) -> Keys:
    """Keys as SQLite writes them in one text: several times faster than a row for each."""
    text: str | None = connection.execute(query, parameters).fetchone()[0]
    return NO_KEYS if text is None else np.fromstring(text, np.int64, sep=",")


def ascending(keys: Keys) -> Keys:
    """Each once. Often they are in order already.

    Not np.unique: it hashes, which takes ten times as long (NumPy 2.4).
    """
    if (np.diff(keys) > 0).all():
        return keys
    first = keys.min()
    span = int(keys.max() - first) + 1
    if span > SPARSE * len(keys):
        keys = np.sort(keys)
        distinct: Keys = keys[np.append(True, keys[1:] != keys[:-1])]
        return distinct
    is_there = np.zeros(span, np.bool_)
    is_there[keys - first] = True
    return np.flatnonzero(is_there) + int(first)
