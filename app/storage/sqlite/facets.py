"""Counting documents per value of a field, exactly."""

import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain import Facet, FacetValue
from app.filters import Filter, Kind, Value, values_of
from app.storage.rows import Keys
from app.storage.sqlite.conditions import FEW, NO_KEYS
from app.storage.sqlite.connection import Database
from app.storage.sqlite.matching import Memory, state_of
from app.storage.sqlite.metadata import field_key

BLOCK_KEYS = 200_000
"""Keys of documents that are counted at once."""

Count = tuple[Value, int]


class FacetRows:
    _database: Database
    _memory: Memory

    def facets(
        self,
        collection_key: int,
        fields: Sequence[str],
        *,
        condition: Filter | None = None,
        limit: int = 10,
    ) -> Mapping[str, Facet]:
        with self._database.read() as connection:
            state = state_of(connection, collection_key)
            among = None if condition is None else self._memory.keys(connection, collection_key, condition)
            if among is not None and len(among) <= FEW:
                return _facets_of_few(connection, fields, among, limit=limit)
            n_documents = len(among) if among is not None else state.n_documents if state else 0
            facets = {}
            for name in fields:
                field = field_key(connection, collection_key, name) if state else None
                facets[name] = _facet(connection, field, among, n_documents, limit=limit)
            return facets


class _Best:
    """Counts of values, of which only the `limit` largest are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._n_values = 0
        self._n_counted = 0
        self._best: Sequence[Count] = []

    def add(self, counts: Sequence[Count]) -> None:
        self._n_values += len(counts)
        self._n_counted += sum(n for _, n in counts)
        self._best = heapq.nsmallest(self._limit, [*self._best, *counts], key=_rank)

    def facet(self, *, n_missing: int) -> Facet:
        return Facet(
            values=tuple(FacetValue(value.value, n) for value, n in self._best),
            n_other_values=self._n_values - len(self._best),
            n_other=self._n_counted - sum(n for _, n in self._best),
            n_missing=n_missing,
        )


def _rank(count: Count) -> tuple[int, int, bool | int | float | str]:
    """By documents, then booleans, numbers, strings, each in their own order."""
    value, n_documents = count
    return -n_documents, value.kind, value.value


def _facets_of_few(
    connection: sqlite3.Connection, fields: Sequence[str], keys: Keys, *, limit: int
) -> Mapping[str, Facet]:
    rows = connection.execute(
        "SELECT metadata FROM documents WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys.tolist()),),
    )
    metadata = [json.loads(stored) for (stored,) in rows]
    facets = {}
    for name in fields:
        held = [_countable(values_of(each.get(name))) for each in metadata]
        best = _Best(limit)
        best.add([*Counter(value for values in held for value in values).items()])
        facets[name] = best.facet(n_missing=sum(not values for values in held))
    return facets


def _countable(values: Iterable[Value]) -> Sequence[Value]:
    return [value for value in values if value.kind != Kind.MOMENT]


def _facet(
    connection: sqlite3.Connection, field: int | None, among: Keys | None, n_documents: int, *, limit: int
) -> Facet:
    best = _Best(limit)
    holders = [NO_KEYS]
    for group in _groups(connection, field):
        is_counted = np.ones(len(group.keys), np.bool_) if among is None else np.isin(group.keys, among)
        counts = np.add.reduceat(is_counted, group.starts, dtype=np.int64).tolist()
        best.add([(value, n) for value, n in zip(group.values, counts, strict=True) if n])
        holders.append(group.keys[is_counted])
    return best.facet(n_missing=n_documents - len(np.unique(np.concatenate(holders))))


@dataclass(frozen=True, slots=True)
class _Group:
    """Some values of a field, and the documents that hold each, one value after the other."""

    values: Sequence[Value]
    starts: Keys
    """Where the documents of each value begin."""
    keys: Keys


def _groups(connection: sqlite3.Connection, field: int | None) -> Iterator[_Group]:
    values: list[Value] = []
    texts: list[str] = []
    starts = [0]
    for kind, value, n_keys, text in connection.execute(
        "SELECT kind, value, count(*), group_concat(document_key) FROM metadata_values "
        "WHERE field_key = ? AND kind < ? GROUP BY kind, value",
        (field, Kind.MOMENT),
    ):
        values.append(Value(Kind(kind), bool(value) if kind == Kind.BOOLEAN else value))
        texts.append(text)
        starts.append(starts[-1] + n_keys)
        if starts[-1] >= BLOCK_KEYS:
            yield _group(values, starts, texts)
            values, texts, starts = [], [], [0]
    if values:
        yield _group(values, starts, texts)


def _group(values: Sequence[Value], starts: Sequence[int], texts: Sequence[str]) -> _Group:
    keys = np.fromstring(",".join(texts), np.int64, sep=",")
    return _Group(values, np.array(starts[:-1], np.int64), keys)
