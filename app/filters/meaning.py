"""What a filter means: the definition that every store has to agree with."""

from app.domain import Metadata
from app.filters.tree import And, Eq, Exists, Filter, In, Limit, Not, Or, Range
from app.filters.values import Kind, Value, values_of


def matches(condition: Filter, metadata: Metadata) -> bool:
    """Whether a document with this metadata satisfies the condition.

    A condition on a field is true when any of the values that the field holds satisfies it, so it is
    false for a field that is missing, null or an empty list.

    >>> from app.filters.values import value_of
    >>> matches(Eq("lang", value_of("en")), {"lang": ["de", "en"]})
    True
    """
    match condition:
        case And(parts):
            return all(matches(part, metadata) for part in parts)
        case Or(parts):
            return any(matches(part, metadata) for part in parts)
        case Not(part):
            return not matches(part, metadata)
        case _:
            return _holds(condition, values_of(metadata.get(condition.field)))


def _holds(condition: Eq | In | Range | Exists, values: frozenset[Value]) -> bool:
    match condition:
        case Eq():
            return condition.value in values
        case In():
            return not condition.values.isdisjoint(values)
        case Range():
            return any(_is_within(value, condition) for value in values)
        case Exists():
            return bool(values)


def _is_within(value: Value, limits: Range) -> bool:
    low, high = limits.low, limits.high
    return (low is None or _is_above(value, low)) and (high is None or _is_below(value, high))


def _is_above(value: Value, low: Limit) -> bool:
    if not _are_comparable(value, low.value):
        return False
    return value.value > low.value.value or (low.is_included and value == low.value)  # type: ignore[operator]


def _is_below(value: Value, high: Limit) -> bool:
    if not _are_comparable(value, high.value):
        return False
    return value.value < high.value.value or (high.is_included and value == high.value)  # type: ignore[operator]


def _are_comparable(value: Value, limit: Value) -> bool:
    return value.kind == limit.kind and value.kind in (Kind.NUMBER, Kind.MOMENT)
