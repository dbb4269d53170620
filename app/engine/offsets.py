"""Offsets for clients whose strings are UTF-16, such as JavaScript."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def utf16_offsets(text: str, offsets: Sequence[int] | NDArray[np.integer]) -> NDArray[np.int64]:
    """The same places, (n,) in code points, counted in UTF-16 code units.

    >>> utf16_offsets("a😀b", [0, 1, 2, 3]).tolist()
    [0, 1, 3, 4]
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    n_pairs = np.concatenate([[0], np.cumsum(codes > 0xFFFF)])  # before each place
    places = np.asarray(offsets, dtype=np.int64)
    converted: NDArray[np.int64] = places + n_pairs[places]
    return converted
