"""Metadata values as conditions compare them: each with a kind, and never across kinds."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import IntEnum

from app.domain import MetadataScalar, MetadataValue

INTEGERS = range(-(2**63), 2**63)
"""Compared exactly, with each other and with floating point numbers; beyond them as floating point."""

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = re.compile(
    r"[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?"
)
EPOCH = date(1970, 1, 1)
DAY_US = 86_400_000_000


class Kind(IntEnum):
    """Stored as these numbers."""

    BOOLEAN = 0
    NUMBER = 1
    STRING = 2
    MOMENT = 3
    """Microseconds since 1970, UTC. What a string that is a date has beside itself, for ranges."""


@dataclass(frozen=True, slots=True)
class Value:
    kind: Kind
    value: bool | int | float | str
    """One spelling per value: a number that is a 64-bit integer is an int, whatever it was before."""


def value_of(scalar: MetadataScalar) -> Value | None:
    """None for null, which is no value.

    >>> value_of(5.0) == value_of(5), value_of("5") == value_of(5), value_of(True) == value_of(1)
    (True, False, False)
    """
    match scalar:
        case None:
            return None
        case bool():
            return Value(Kind.BOOLEAN, scalar)
        case str():
            return Value(Kind.STRING, scalar)
        case _:
            return Value(Kind.NUMBER, _number(scalar))


def values_of(value: MetadataValue) -> frozenset[Value]:
    """All that a field holds: of a list its elements; and the moment of each string that is a date.

    Null and the empty list hold nothing, as a field that is not there.
    """
    if isinstance(value, MetadataScalar):
        return frozenset(_values_of(value))
    return frozenset(each for scalar in value for each in _values_of(scalar))


def moment_of(text: str) -> Value | None:
    """The moment that an ISO 8601 date or date-time names, None for any other string.

    A date is its first moment; without an offset the time is UTC; beyond microseconds digits are cut.

    >>> moment_of("1970-01-02T01:00+01:00") == moment_of("1970-01-02")
    True
    >>> moment_of("1970-13-02"), moment_of("1970")
    (None, None)
    """
    if not DATE.match(text):
        return None
    try:
        days = (date.fromisoformat(text[:10]) - EPOCH).days
        time_us = 0 if is_whole_day(text) else _time_us(text[10:])
    except ValueError:
        return None
    return None if time_us is None else Value(Kind.MOMENT, days * DAY_US + time_us)


def is_whole_day(text: str) -> bool:
    """Whether it has the form of a date without a time."""
    return DATE.fullmatch(text) is not None


def _values_of(scalar: MetadataScalar) -> Iterator[Value]:
    value = value_of(scalar)
    if value is not None:
        yield value
    if isinstance(scalar, str) and (moment := moment_of(scalar)):
        yield moment


def _number(number: int | float) -> int | float:
    if isinstance(number, int):
        return number if number in INTEGERS else _float(number)
    return int(number) if number.is_integer() and int(number) in INTEGERS else number


def _float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > 0 else -sys.float_info.max


def _time_us(text: str) -> int | None:
    """Microseconds since the day began, UTC; None where it is no time of a day."""
    found = TIME.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds, fraction, _, sign, offset_hours, offset_minutes = found.groups()
    if int(hours) > 23 or int(minutes) > 59 or int(seconds or 0) > 59:
        return None
    if int(offset_hours or 0) > 23 or int(offset_minutes or 0) > 59:
        return None
    offset = 60 * int(offset_hours or 0) + int(offset_minutes or 0)
    time_minutes = 60 * int(hours) + int(minutes) + (offset if sign == "-" else -offset)
    return (60 * time_minutes + int(seconds or 0)) * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])
