"""A text of any length as one vector: encoded in windows that fit the encoder, and averaged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.embedder import Embedder
from app.errors import BlankText

CALL_TEXTS = 16
"""Windows per call of the encoder, so that a long text does not fill its queue."""
FILL = 0.9
"""Share of the limit that is aimed at: windows of equal length differ in tokens."""


@dataclass(frozen=True, slots=True)
class WholeText:
    vector: NDArray[np.float32]  # (d,), of length 1
    n_tokens: int
    """Of all windows, special tokens included."""
    n_windows: int


def encode_whole(text: str, embedder: Embedder) -> WholeText:
    """Encode a text as a document, none of it cut off.

    v = sum_w n[w] * v[w] / |sum_w n[w] * v[w]|, with n[w] the tokens of window w: the same mean that
    stands for a stored document of several passages.

    Raises:
        BlankText: the whole text is; a window without a visible character is left out.
        BadVector, Overloaded: as the encoder does.
    """
    max_tokens = embedder.description.max_tokens
    total = np.zeros(embedder.description.dimensions, dtype=np.float64)
    n_tokens = n_windows = 0
    pending = [text]
    while pending:
        windows, pending = pending[:CALL_TEXTS], pending[CALL_TEXTS:]
        try:
            encoded = embedder.encode_documents(windows)
        except BlankText as error:
            if windows == [text]:
                raise
            pending = [w for i, w in enumerate(windows) if i != error.where[-1]] + pending
            continue
        too_long: list[str] = []
        for window, vector, n, is_cut in zip(
            windows, encoded.vectors, encoded.n_tokens.tolist(), encoded.truncated.tolist(), strict=True
        ):
            if is_cut and len(window) > 1:
                too_long += cut(window, max(2, math.ceil(n / (FILL * max_tokens))))
                continue
            total += n * vector
            n_tokens += n
            n_windows += 1
        pending = too_long + pending
    vector = (total / np.linalg.norm(total)).astype(np.float32)
    return WholeText(vector, n_tokens, n_windows)


def cut(text: str, n_pieces: int) -> Sequence[str]:
    """At most `n_pieces` pieces of about equal length, cut at white space where there is some near.

    Joined they are the text, but for white space at their ends; no piece is blank.

    >>> cut("one two three four", 2)
    ['one two', 'three four']
    """
    pieces: list[str] = []
    start = 0
    for n_left in range(n_pieces, 0, -1):
        length = math.ceil((len(text) - start) / n_left)
        end = start + length
        if end < len(text):
            spaces = [i for i in range(end, start + length // 2, -1) if text[i].isspace()]
            end = spaces[0] if spaces else end
        pieces.append(text[start:end].strip())
        start = end
    return [piece for piece in pieces if piece]
