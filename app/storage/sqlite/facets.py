"""Counting documents per value of a field, exactly."""

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain import Facet, FacetValue
from app.filters import Filter, Kind, values_of
from app.storage.rows import Keys
from app.storage.sqlite.columns import Column, Columns, Scalar
from app.storage.sqlite.conditions import FEW, ascending
from app.storage.sqlite.connection import Database
from app.storage.sqlite.matching import Changes, Memory, state_of
from app.storage.sqlite.metadata import field_key
from app.storage.sqlite.values import from_json

Value = tuple[int, Scalar]
"""Kind and value."""


class FacetRows:
    _database: Database
    _memory: Memory
    _columns: Columns

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
            if state is None:
                return dict.fromkeys(fields, Facet((), 0, 0, 0))
            among = None if condition is None else self._memory.keys(connection, collection_key, condition)
            if among is not None and len(among) <= FEW:
                held = _metadata(connection, among)
                return {name: _facet_of_few(name, held, limit=limit) for name in fields}
            n_documents = state.n_documents if among is None else len(among)
            facets = {}
            for name in fields:
                field = field_key(connection, collection_key, name)
                if field is None:
                    facets[name] = Facet((), 0, 0, n_documents)
                    continue
                column, changes = self._columns.column(connection, collection_key, field, state)
                counts = _Counts(name, column, changes, among)
                facets[name] = counts.facet(n_documents, limit=limit)
            return facets


class _Counts:
    """Documents per value: of a column, corrected by what has changed since it was read."""

    def __init__(self, name: str, column: Column, changes: Changes, among: Keys | None) -> None:
        is_counted = _is_counted(column, changes, among)
        self._column = column
        self._counts = column.counts(is_counted)
        self._n_holders = _n_holders(column, is_counted)
        self._new: Counter[Value] = Counter()
        """Of values that no document held when the column was read."""
        for metadata in _written_among(changes, among):
            values = _values(name, metadata)
            self._n_holders += bool(values)
            self._add(values)

    def _add(self, values: Sequence[Value]) -> None:
        for value in values:
            place = self._column.place(*value)
            if place is None:
                self._new[value] += 1
            else:
                self._counts[place] += 1

    def facet(self, n_documents: int, *, limit: int) -> Facet:
        # A stable sort: equal counts stay in the order of the column, which is that of kind and value.
        best = np.argsort(-self._counts, kind="stable")[:limit].tolist()
        counted = {(self._column.kinds[i], self._column.values[i]): int(self._counts[i]) for i in best}
        return _facet(
            Counter({value: n for value, n in counted.items() if n}) + self._new,
            n_values=int(np.count_nonzero(self._counts)) + len(self._new),
            n_counted=int(self._counts.sum()) + self._new.total(),
            n_missing=n_documents - self._n_holders,
            limit=limit,
        )


def _is_counted(column: Column, changes: Changes, among: Keys | None) -> NDArray[np.bool_]:
    if among is not None:
        return np.isin(column.keys, among)
    return np.isin(column.keys, changes.dead, invert=True)


def _n_holders(column: Column, is_counted: NDArray[np.bool_]) -> int:
    if column.is_single:
        return int(np.count_nonzero(is_counted))
    return len(ascending(column.keys[is_counted]))


def _written_among(changes: Changes, among: Keys | None) -> Sequence[str]:
    if among is None:
        return [metadata for _, metadata in changes.written]
    wanted = set(among[np.isin(among, [key for key, _ in changes.written])].tolist())
    return [metadata for key, metadata in changes.written if key in wanted]


def _metadata(connection: sqlite3.Connection, keys: Keys) -> Sequence[str]:
    rows = connection.execute(
        "SELECT metadata FROM documents WHERE key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys.tolist()),),
    )
    return [metadata for (metadata,) in rows]


def _facet_of_few(name: str, held: Sequence[str], *, limit: int) -> Facet:
    values = [_values(name, metadata) for metadata in held]
    counts = Counter(value for each in values for value in each)
    return _facet(
        counts,
        n_values=len(counts),
        n_counted=counts.total(),
        n_missing=sum(not each for each in values),
        limit=limit,
    )


def _values(name: str, metadata: str) -> Sequence[Value]:
    """That the field holds, moments aside; `metadata` is in JSON."""
    values = values_of(from_json(metadata).get(name))
    return [(int(each.kind), each.value) for each in values if each.kind != Kind.MOMENT]


def _facet(counts: Counter[Value], *, n_values: int, n_counted: int, n_missing: int, limit: int) -> Facet:
    """`counts` hold the most frequent values, others may be left out; the totals are of all."""
    best = sorted(counts.items(), key=lambda count: (-count[1], count[0]))[:limit]
    return Facet(
        values=tuple(FacetValue(value, n) for (_, value), n in best),
        n_other_values=n_values - len(best),
        n_other=n_counted - sum(n for _, n in best),
        n_missing=n_missing,
    )
