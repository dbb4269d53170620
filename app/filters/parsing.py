"""Filters as they are written in JSON, and what is said about one that is wrong.

    {"and": [{"field": "lang", "eq": "en"}, {"not": {"field": "year", "lt": 2020}}]}

A filter is an object: `and` or `or` with a list of filters, `not` with a filter, or `field` with one of
`eq`, `in`, `exists`, or with one or two limits out of `gt`, `gte`, `lt`, `lte`.
"""

import math
from collections.abc import Mapping
from typing import Any

from app.errors import BadFilter
from app.filters.tree import And, Eq, Exists, Filter, In, Limit, Not, Or, Range
from app.filters.values import DAY_US, INTEGERS, Kind, Value, is_whole_day, moment_of, value_of

MAX_DEPTH = 16
MAX_NODES = 256
MAX_IN_VALUES = 10_000

JUNCTIONS = ("and", "or", "not")
LIMITS = ("gt", "gte", "lt", "lte")
OPERATORS = ("eq", "in", *LIMITS, "exists")
FORMS = "`and`, `or`, `not`, or `field` with one of " + ", ".join(f"`{name}`" for name in OPERATORS)

Where = tuple[str | int, ...]


def parse_filter(json_value: object, *, where: Where = ("filter",)) -> Filter:
    """Read a filter out of parsed JSON. `where` is its place in what the caller sent, for messages.

    Raises:
        BadFilter: naming the path of the offending part and what is allowed there.
    """
    return _Parser().parse(json_value, where, depth=1)


class _Parser:
    """Counts the conditions of one filter."""

    def __init__(self) -> None:
        self._n_nodes = 0

    def parse(self, json_value: object, where: Where, *, depth: int) -> Filter:
        self._n_nodes += 1
        if self._n_nodes > MAX_NODES:
            raise BadFilter(f"the filter has more than {MAX_NODES} conditions", where=where)
        if depth > MAX_DEPTH:
            raise BadFilter(f"the filter is nested more than {MAX_DEPTH} levels deep", where=where)
        if not isinstance(json_value, dict):
            raise BadFilter(f"is {kind_of(json_value)}; a filter is an object with {FORMS}", where=where)
        if "field" in json_value:
            return _parse_field(json_value, where)
        return self._parse_junction(json_value, where, depth)

    def _parse_junction(self, node: Mapping[str, Any], where: Where, depth: int) -> Filter:
        unknown = [name for name in node if name not in JUNCTIONS]
        if unknown and unknown[0] in OPERATORS:
            raise BadFilter(f"`{unknown[0]}` needs a `field` beside it", where=where)
        if unknown:
            raise BadFilter(f"unknown operator {_shown(unknown[0])}; allowed are {FORMS}", where=where)
        if len(node) != 1:
            found = " and ".join(f"`{name}`" for name in node) or "nothing"
            raise BadFilter(f"has {found}; a filter has exactly one of {FORMS}", where=where)
        [(name, operand)] = node.items()
        where = (*where, name)
        if name == "not":
            return Not(self.parse(operand, where, depth=depth + 1))
        if not isinstance(operand, list) or not operand:
            raise BadFilter(
                f"is {kind_of(operand)}; `{name}` takes a list of one or more filters", where=where
            )
        parts = tuple(self.parse(part, (*where, i), depth=depth + 1) for i, part in enumerate(operand))
        return And(parts) if name == "and" else Or(parts)


def _parse_field(node: Mapping[str, Any], where: Where) -> Filter:
    field = node["field"]
    if not isinstance(field, str) or not field:
        raise BadFilter(
            f"is {kind_of(field)}; the name of a metadata field is allowed", where=(*where, "field")
        )
    _require_unicode(field, (*where, "field"))
    operators = [name for name in node if name != "field"]
    for name in operators:
        if name not in OPERATORS:
            allowed = ", ".join(OPERATORS)
            raise BadFilter(f"unknown operator {_shown(name)}; allowed are {allowed}", where=where)
    if operators and all(name in LIMITS for name in operators):
        return _parse_range(field, node, where)
    if len(operators) != 1:
        found = " and ".join(f"`{name}`" for name in operators) or "no operator"
        raise BadFilter(
            f"has {found}; beside `field` stands exactly one of `eq`, `in`, `exists`, "
            "or one or two of `gt`, `gte`, `lt`, `lte`",
            where=where,
        )
    name = operators[0]
    operand, where = node[name], (*where, name)
    if name == "eq":
        return Eq(field, _parse_scalar(operand, where))
    if name == "in":
        return _parse_in(field, operand, where)
    if not isinstance(operand, bool):
        raise BadFilter(f"is {kind_of(operand)}; true or false is allowed", where=where)
    return Exists(field) if operand else Not(Exists(field))


def _parse_in(field: str, operand: object, where: Where) -> Filter:
    if not isinstance(operand, list):
        raise BadFilter(
            f"is {kind_of(operand)}; a list of strings, numbers and booleans is allowed", where=where
        )
    if len(operand) > MAX_IN_VALUES:
        raise BadFilter(f"has {len(operand)} values; at most {MAX_IN_VALUES} are allowed", where=where)
    return In(field, frozenset(_parse_scalar(each, (*where, i)) for i, each in enumerate(operand)))


def _parse_scalar(operand: object, where: Where) -> Value:
    if operand is None:
        raise BadFilter(
            "is null; a string, number or boolean is allowed, "
            "and `exists` false finds documents without a value",
            where=where,
        )
    if isinstance(operand, str):
        _require_unicode(operand, where)
    elif isinstance(operand, int | float):
        _require_finite(operand, where)
    else:
        hint = "; `in` takes a list" if isinstance(operand, list) else ""
        raise BadFilter(f"is {kind_of(operand)}; a string, number or boolean is allowed{hint}", where=where)
    value = value_of(operand)
    assert value is not None
    return value


def _parse_range(field: str, node: Mapping[str, Any], where: Where) -> Filter:
    for one, other in (("gt", "gte"), ("lt", "lte")):
        if one in node and other in node:
            raise BadFilter(f"has `{one}` and `{other}`; one of them is allowed", where=where)
    limits = {name: _parse_limit(name, node[name], (*where, name)) for name in LIMITS if name in node}
    if len({limit.value.kind for limit in limits.values()}) > 1:
        raise BadFilter(
            f"{' and '.join(f'`{name}`' for name in limits)} must both be numbers or both dates",
            where=where,
        )
    return Range(
        field,
        low=limits.get("gt") or limits.get("gte"),
        high=limits.get("lt") or limits.get("lte"),
    )


def _parse_limit(name: str, operand: object, where: Where) -> Limit:
    """A date without a time is a whole day: after it begins the next one, up to it includes all of it."""
    allowed = "a number, or a date such as 2024-05-31 or 2024-05-31T12:00:00Z, is allowed"
    if isinstance(operand, int | float) and not isinstance(operand, bool):
        _require_finite(operand, where)
        value = value_of(operand)
        assert value is not None
        return Limit(value, is_included=name in ("gte", "lte"))
    if not isinstance(operand, str):
        raise BadFilter(f"is {kind_of(operand)}; {allowed}", where=where)
    moment = moment_of(operand)
    if moment is None:
        raise BadFilter(f"{_shown(operand)} is not a date of the form ISO 8601; {allowed}", where=where)
    if is_whole_day(operand) and name in ("gt", "lte"):
        next_day = Value(Kind.MOMENT, int(moment.value) + DAY_US)
        return Limit(next_day, is_included=name == "gt")
    return Limit(moment, is_included=name in ("gte", "lte"))


def _require_finite(number: int | float, where: Where) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise BadFilter(f"is {number}; finite numbers are allowed", where=where)
    if isinstance(number, int) and number not in INTEGERS:
        raise BadFilter("is beyond 64 bits; integers of 64 bits are allowed", where=where)


def _require_unicode(text: str, where: Where) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadFilter(
            f"has half a surrogate pair at character {error.start}; whole Unicode characters are allowed",
            where=where,
        ) from error


def kind_of(json_value: object) -> str:
    match json_value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string" if json_value else "an empty string"
        case list():
            return "a list" if json_value else "an empty list"
        case dict():
            return "an object"
        case _:
            return "a number"


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 60 else text[:60] + "...")
