"""Conditions on metadata: what they are, what they mean, and how they are written in JSON.

Reading order: values, tree, meaning, parsing. The truth table is docs/filters.md.
"""

from app.filters.meaning import matches
from app.filters.parsing import parse_filter
from app.filters.tree import And, Eq, Exists, Filter, In, Limit, Not, Or, Range
from app.filters.values import Kind, Value, value_of, values_of

__all__ = [
    "And",
    "Eq",
    "Exists",
    "Filter",
    "In",
    "Kind",
    "Limit",
    "Not",
    "Or",
    "Range",
    "Value",
    "matches",
    "parse_filter",
    "value_of",
    "values_of",
]
