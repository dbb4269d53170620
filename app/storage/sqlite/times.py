"""Moments as the tables keep them: microseconds since 1970, UTC."""

import datetime as dt
import time

from app.errors import StorageDamaged

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def now_us() -> int:
    return time.time_ns() // 1_000


def from_us(microseconds: int) -> dt.datetime:
    """Raises StorageDamaged."""
    try:
        return _EPOCH + dt.timedelta(microseconds=microseconds)
    except (OverflowError, TypeError) as error:
        raise StorageDamaged(f"a moment in the store is damaged: {microseconds!r}") from error


def to_us(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)
