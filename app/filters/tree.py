"""The syntax tree of a filter. Hashable: equal trees are the same condition."""

from dataclasses import dataclass
from typing import TypeAlias

from app.filters.values import Value


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """True exactly where `part` is false, so also for a document without the field."""

    part: "Filter"


@dataclass(frozen=True, slots=True)
class Eq:
    """The field holds this value."""

    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The field holds any of these values."""

    field: str
    values: frozenset[Value]


@dataclass(frozen=True, slots=True)
class Limit:
    value: Value
    """A number or a moment."""
    is_included: bool


@dataclass(frozen=True, slots=True)
class Range:
    """The field holds a value between these limits, which are of one kind; at least one is given."""

    field: str
    low: Limit | None = None
    high: Limit | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """The field holds any value."""

    field: str


Filter: TypeAlias = And | Or | Not | Eq | In | Range | Exists
