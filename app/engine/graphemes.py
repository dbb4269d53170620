"""Borders between the characters that a reader sees: never inside a combining sequence or a joined emoji."""

from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

GRAPHEME = regex.compile(r"\X")


def widened(text: str, start: int, end: int) -> tuple[int, int]:
    """The least slice that contains [start, end) and cuts no grapheme (Unicode Standard Annex 29).

    >>> widened("cafe\\u0301!", 0, 4)
    (0, 5)
    """
    if text.isascii() and "\r\n" not in text:
        return start, end
    borders = _borders(text)
    first = int(np.searchsorted(borders, start, side="right")) - 1
    last = int(np.searchsorted(borders, end, side="left"))
    return int(borders[first]), int(borders[last])


@lru_cache(maxsize=8)  # the spans of a text are widened one after the other
def _borders(text: str) -> NDArray[np.int64]:
    return np.array([0, *(found.end() for found in GRAPHEME.finditer(text))], dtype=np.int64)
