"""Hypothesis strategies: filters as JSON and as trees, over metadata that they often match."""

from typing import Any

from hypothesis import strategies as st

from app.filters import parse_filter

fields = st.sampled_from(["a", "b", "é", "with.dot"])
numbers = (
    st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0, 2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 2.0**63, 1e300])
    | st.floats(allow_nan=False, allow_infinity=False)
)
dates = st.sampled_from(
    [
        "2024-01-01",
        "2024-01-02",
        "2024-01-01T00:00:00Z",
        "2024-01-01T12:30",
        "2024-01-02T01:00:00+02:00",
        "2024-01-01T23:59:59.999999",
        "0001-01-01T00:00+01:00",
        "9999-12-31",
    ]
)
strings = st.sampled_from(["", "x", "X", "1", "true", "x\0y", "é", "😀", "2024-13-01"]) | dates
scalars = st.booleans() | numbers | strings
values = st.none() | scalars | st.lists(st.none() | scalars, max_size=3)
metadata = st.dictionaries(fields, values, max_size=3)


def _range(field: str, low: tuple[str, Any] | None, high: tuple[str, Any] | None) -> dict[str, Any]:
    return {"field": field, **dict(limit for limit in (low, high) if limit)}


def _ranges(limits: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    lows = st.tuples(st.sampled_from(["gt", "gte"]), limits)
    highs = st.tuples(st.sampled_from(["lt", "lte"]), limits)
    return (
        st.builds(_range, fields, lows, highs)
        | st.builds(_range, fields, lows, st.none())
        | st.builds(_range, fields, st.none(), highs)
    )


leaves = (
    st.builds(lambda field, value: {"field": field, "eq": value}, fields, scalars)
    | st.builds(lambda field, values: {"field": field, "in": values}, fields, st.lists(scalars, max_size=4))
    | _ranges(numbers)
    | _ranges(dates)
    | st.builds(lambda field, flag: {"field": field, "exists": flag}, fields, st.booleans())
)
filters_in_json: st.SearchStrategy[dict[str, Any]] = st.recursive(
    leaves,
    lambda parts: (
        st.builds(
            lambda name, each: {name: each},
            st.sampled_from(["and", "or"]),
            st.lists(parts, min_size=1, max_size=3),
        )
        | st.builds(lambda part: {"not": part}, parts)
    ),
    max_leaves=6,
)
conditions = filters_in_json.map(parse_filter)
