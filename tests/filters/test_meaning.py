import pytest
from hypothesis import given

from app.domain import Metadata
from app.filters import And, Eq, Exists, Filter, In, Not, Or, matches, value_of, values_of
from tests.filters.made_filters import conditions, metadata, scalars
from tests.filters.truth_table import Row, rows


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.text)
def test_a_row_of_the_truth_table_holds(row: Row) -> None:
    assert matches(row.condition, row.metadata) is row.result


@given(conditions, conditions, metadata)
def test_junctions_are_those_of_logic(one: Filter, other: Filter, metadata: Metadata) -> None:
    first, second = matches(one, metadata), matches(other, metadata)
    assert matches(And((one, other)), metadata) is (first and second)
    assert matches(Or((one, other)), metadata) is (first or second)
    assert matches(Not(one), metadata) is (not first)


@given(metadata)
def test_a_field_exists_exactly_where_it_holds_a_value(metadata: Metadata) -> None:
    for field, value in metadata.items():
        assert matches(Exists(field), metadata) is bool(values_of(value))


@given(scalars, scalars)
def test_in_is_any_of_eq(one: str | int | float | bool, other: str | int | float | bool) -> None:
    first, second = value_of(one), value_of(other)
    assert first is not None
    assert second is not None
    for held in (one, other, "something else", 12345):
        metadata: Metadata = {"a": held}
        either = Or((Eq("a", first), Eq("a", second)))
        assert matches(In("a", frozenset([first, second])), metadata) is matches(either, metadata)
