"""Capitals for a model whose vocabulary knows none: segment 1 for what has a capital letter, 0 for the rest.

An uncased BERT reads `us` in `US`. Its second segment embedding is free where there is one text alone, and
fine-tuning can make a sign of it. Names are told by their capitals (Tjong Kim Sang and De Meulder 2003,
section 4, list case among the features of nearly all systems).
"""

from collections.abc import Sequence

import numpy as np

from app.engine.pieces import Ids


def has_capital(piece: str) -> bool:
    return any(map(str.isupper, piece))


def capital_segments(text: str, starts: Ids, ends: Ids) -> Ids:
    """Segment id of each piece (t,) between its offsets in the text.

    >>> capital_segments("US sales", np.array([0, 3]), np.array([2, 8])).tolist()
    [1, 0]
    """
    pieces: Sequence[tuple[int, int]] = list(zip(starts.tolist(), ends.tolist(), strict=True))
    return np.array([has_capital(text[start:end]) for start, end in pieces], dtype=np.int32)
