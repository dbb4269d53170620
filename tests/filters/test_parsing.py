import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadFilter
from app.filters import And, Eq, Exists, In, Kind, Limit, Not, Or, Range, Value, parse_filter, value_of
from app.filters.parsing import MAX_DEPTH, MAX_IN_VALUES, MAX_NODES
from tests.filters.made_filters import filters_in_json

LEAF = {"field": "a", "eq": 1}


def typed(scalar: str | int | float | bool) -> Value:
    value = value_of(scalar)
    assert value is not None
    return value


def nested(depth: int) -> Any:
    written: Any = LEAF
    for _ in range(depth - 1):
        written = {"not": written}
    return written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"field": "a", "eq": "x"}, Eq("a", typed("x"))),
        ({"field": "a", "in": [1, "x"]}, In("a", frozenset([typed(1), typed("x")]))),
        ({"field": "a", "in": []}, In("a", frozenset())),
        ({"field": "a", "exists": True}, Exists("a")),
        ({"field": "a", "exists": False}, Not(Exists("a"))),
        ({"field": "a", "gt": 1}, Range("a", low=Limit(typed(1), is_included=False))),
        (
            {"field": "a", "lte": 2.5, "gte": 1},
            Range("a", Limit(typed(1), is_included=True), Limit(typed(2.5), is_included=True)),
        ),
        (
            {"field": "a", "lt": "1970-01-01T00:00:01Z"},
            Range("a", high=Limit(Value(Kind.MOMENT, 1_000_000), is_included=False)),
        ),
        ({"and": [LEAF]}, And((Eq("a", typed(1)),))),
        ({"or": [LEAF, {"not": LEAF}]}, Or((Eq("a", typed(1)), Not(Eq("a", typed(1)))))),
        ({"field": "and", "eq": True}, Eq("and", typed(True))),
    ],
    ids=lambda part: json.dumps(part) if isinstance(part, dict) else "",
)
def test_each_form_is_read(written: object, expected: object) -> None:
    assert parse_filter(written) == expected


@pytest.mark.parametrize(
    ("written", "where", "message"),
    [
        (None, (), r"is null; a filter is an object with `and`, `or`, `not`, or `field`"),
        ([LEAF], (), r"is a list; a filter is an object"),
        ("a = 1", (), r"is a string; a filter is an object"),
        ({}, (), r"has nothing; a filter has exactly one of"),
        ({"must": [LEAF]}, (), r"unknown operator 'must'; allowed are `and`, `or`, `not`, .*`exists`"),
        ({"eq": 1}, (), r"`eq` needs a `field` beside it"),
        ({"and": [LEAF], "or": [LEAF]}, (), r"has `and` and `or`; a filter has exactly one of"),
        ({"and": []}, ("and",), r"is an empty list; `and` takes a list of one or more filters"),
        ({"or": LEAF}, ("or",), r"is an object; `or` takes a list"),
        ({"not": [LEAF]}, ("not",), r"is a list; a filter is an object"),
        ({"and": [LEAF, 7]}, ("and", 1), r"is a number; a filter is an object"),
        ({"field": 7, "eq": 1}, ("field",), r"is a number; the name of a metadata field is allowed"),
        ({"field": "", "eq": 1}, ("field",), r"is an empty string"),
        ({"field": "\ud800", "eq": 1}, ("field",), r"half a surrogate pair at character 0"),
        ({"field": "a"}, (), r"has no operator; beside `field` stands exactly one of `eq`"),
        ({"field": "a", "equals": 1}, (), r"'equals'; allowed are eq, in, gt, gte, lt, lte, exists"),
        ({"field": "a", "eq": 1, "in": [1]}, (), r"has `eq` and `in`; beside `field`"),
        ({"field": "a", "eq": 1, "lt": 1}, (), r"has `eq` and `lt`; beside `field`"),
        ({"field": "a", "and": [LEAF]}, (), r"unknown operator 'and'; allowed are eq"),
        ({"field": "a", "eq": None}, ("eq",), r"is null; .*`exists` false finds documents without"),
        ({"field": "a", "eq": ["x"]}, ("eq",), r"is a list; a string, number or boolean.*`in` takes a list"),
        ({"field": "a", "eq": {}}, ("eq",), r"is an object; a string, number or boolean is allowed$"),
        ({"field": "a", "eq": float("nan")}, ("eq",), r"is nan; finite numbers are allowed"),
        ({"field": "a", "eq": 2**63}, ("eq",), r"is beyond 64 bits"),
        ({"field": "a", "eq": "x\udfff"}, ("eq",), r"half a surrogate pair at character 1"),
        ({"field": "a", "in": "x"}, ("in",), r"is a string; a list of strings, numbers and booleans"),
        ({"field": "a", "in": ["x", None]}, ("in", 1), r"is null; a string, number or boolean"),
        ({"field": "a", "in": ["x", ["y"]]}, ("in", 1), r"is a list; a string, number or boolean"),
        ({"field": "a", "in": [0] * 10_001}, ("in",), r"has 10001 values; at most 10000"),
        ({"field": "a", "exists": 1}, ("exists",), r"is a number; true or false is allowed"),
        ({"field": "a", "gt": 1, "gte": 1}, (), r"has `gt` and `gte`; one of them is allowed"),
        ({"field": "a", "lt": 1, "lte": 1}, (), r"has `lt` and `lte`; one of them is allowed"),
        ({"field": "a", "gt": True}, ("gt",), r"is a boolean; a number, or a date such as 2024-05-31"),
        ({"field": "a", "gt": None}, ("gt",), r"is null; a number, or a date"),
        ({"field": "a", "lt": float("inf")}, ("lt",), r"is inf; finite numbers are allowed"),
        ({"field": "a", "lt": "m"}, ("lt",), r"'m' is not a date of the form ISO 8601; a number, or a date"),
        ({"field": "a", "lt": "2024-02-30"}, ("lt",), r"'2024-02-30' is not a date"),
        ({"field": "a", "lt": "2024-01-01T24:00"}, ("lt",), r"is not a date"),
        ({"field": "a", "lt": "2024-01-01T10:60"}, ("lt",), r"is not a date"),
        ({"field": "a", "lt": "2024-01-01T10:00+10:70"}, ("lt",), r"is not a date"),
        ({"field": "a", "lt": "٢٠٢٤-01-01"}, ("lt",), r"is not a date"),
        (
            {"field": "a", "gt": 1, "lt": "2024-01-01"},
            (),
            r"`gt` and `lt` must both be numbers or both dates",
        ),
    ],
    ids=lambda part: json.dumps(part)[:60] if isinstance(part, dict | list) else "",
)
def test_what_is_wrong_is_refused_with_its_path_and_what_is_allowed(
    written: object, where: tuple[str | int, ...], message: str
) -> None:
    with pytest.raises(BadFilter, match=message) as refused:
        parse_filter(written)
    assert refused.value.where == ("filter", *where)


def test_the_path_begins_where_the_caller_says() -> None:
    with pytest.raises(BadFilter) as refused:
        parse_filter({"and": [LEAF, {"not": {"field": "a", "eq": None}}]}, where=("queries", 3, "filter"))
    assert refused.value.where == ("queries", 3, "filter", "and", 1, "not", "eq")


def test_nesting_is_limited() -> None:
    parse_filter(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(BadFilter, match=f"more than {MAX_DEPTH} levels"):
            parse_filter(nested(depth))


def test_the_number_of_conditions_is_limited() -> None:
    parse_filter({"or": [LEAF] * (MAX_NODES - 1)})
    with pytest.raises(BadFilter, match=f"more than {MAX_NODES} conditions"):
        parse_filter({"or": [LEAF] * MAX_NODES})


def test_a_list_of_values_may_be_long() -> None:
    parsed = parse_filter({"field": "a", "in": list(range(MAX_IN_VALUES))})
    assert isinstance(parsed, In)
    assert len(parsed.values) == MAX_IN_VALUES


@given(filters_in_json)
def test_equal_filters_are_equal_keys(written: dict[str, Any]) -> None:
    again = parse_filter(json.loads(json.dumps(written)))
    assert parse_filter(written) == again
    assert hash(parse_filter(written)) == hash(again)


def test_filters_of_different_meaning_are_different_keys() -> None:
    assert len({parse_filter({"field": "a", "eq": value}) for value in (1, True, "1")}) == 3


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda parts: (
        st.lists(parts)
        | st.dictionaries(
            st.sampled_from(["and", "or", "not", "field", "eq", "in", "gt", "lt", "exists", "x"]), parts
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_read_or_refused_with_its_path(written: object) -> None:
    where: tuple[str | int, ...] = ("filter",)
    try:
        parse_filter(written)
    except BadFilter as error:
        where = error.where
    assert where[0] == "filter"
