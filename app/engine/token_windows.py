"""A long text in windows that overlap, so that every token is read with tokens around it, and owned once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.pieces import Ids

OVERLAP_DIVISOR = 4
"""Neighbouring windows share a quarter of their tokens."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens `start` to `end` are read together; those from `owned_start` to `owned_end` count."""

    start: int
    end: int
    owned_start: int
    owned_end: int


def token_windows(words: Ids, *, room: int) -> Sequence[Window]:
    """Cut tokens, of which `words` (t,) has each one's word, into windows of at most `room` tokens.

    Owned ranges follow each other without a gap. They meet in the middle of an overlap, at the beginning of a
    word unless a word is as long as the overlap.

    >>> for window in token_windows(np.arange(10), room=6):
    ...     print(window.start, window.end, window.owned_start, window.owned_end)
    0 6 0 5
    4 10 5 10
    """
    n = len(words)
    begins = np.flatnonzero(np.diff(words, prepend=-1) != 0)  # first tokens of words
    spans = list(_spans(n, begins, room=room))
    borders = [
        0,
        *(_border(begins, low, high) for (low, _), (_, high) in zip(spans[1:], spans, strict=False)),
        n,
    ]
    return [Window(start, end, borders[i], borders[i + 1]) for i, (start, end) in enumerate(spans)]


def _spans(n: int, begins: NDArray[np.int64], *, room: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start + room < n:
        end = start + room
        yield start, end
        following = end - room // OVERLAP_DIVISOR
        if following + room < n:
            aligned = _last_at_most(begins, following)
            start = aligned if aligned > start else following
        else:  # the last one: with as much before it as there is room for
            aligned = int(begins[np.searchsorted(begins, n - room)]) if begins[-1] >= n - room else n
            start = aligned if aligned < end else n - room
    yield start, n


def _border(begins: NDArray[np.int64], low: int, high: int) -> int:
    """Where the next window's own tokens begin, in the overlap from low to high."""
    middle = (low + high) // 2
    aligned = _last_at_most(begins, middle)
    return aligned if aligned >= low else middle


def _last_at_most(begins: NDArray[np.int64], place: int) -> int:
    return int(begins[np.searchsorted(begins, place, side="right") - 1])
