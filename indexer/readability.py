"""Whether a model's vocabulary knows the language of a text."""

import numpy as np
import regex
from numpy.typing import NDArray

from app.engine.tokenizer import Tokens

MAX_UNKNOWN_SHARE = 0.05
MIN_UNKNOWN = 3
MIN_LETTERS_PER_PIECE = 1.5
MIN_LETTERS = 40
"""Thresholds measured with the vocabulary of all-MiniLM-L6-v2 (English, uncased) on the Universal Declaration
of Human Rights. Letters per piece: English 4.4, French 2.7, German 2.5, Polish 1.9, Welsh 1.8; Hindi 1.3,
Arabic, Greek, Hebrew and Russian 1.0, Korean 0.5. Share of unknown: Japanese 0.31, Chinese 0.6, Thai 0.8,
Amharic 1.0, and 0.00 in nearly every language in Latin letters."""
ALPHABETIC = regex.compile(r"(?V1)[[\p{L}\p{M}]--[\p{Han}\p{Hiragana}\p{Katakana}]]")
"""Han and kana count as pieces of one letter in models made for them, too."""


def readability_warnings(tokens: Tokens, text: str) -> tuple[str, ...]:
    """Say where search by meaning cannot work well because the model does not know the text's words.

    Args:
        tokens: of `text`.
    """
    n_unknown = int(np.count_nonzero(tokens.unknown))
    if n_unknown >= MIN_UNKNOWN and n_unknown > MAX_UNKNOWN_SHARE * len(tokens):
        share = n_unknown / len(tokens)
        return (
            f"the embedding model has no token for {share:.0%} of this text, so search by meaning will miss"
            " much of it; use a model that was made for its language",
        )
    letters = _letters(text)
    n_letters = int(np.count_nonzero(letters))
    n_pieces = int(np.count_nonzero(letters[tokens.ends - 1]))
    if n_letters >= MIN_LETTERS and n_letters < MIN_LETTERS_PER_PIECE * n_pieces:
        return (
            f"the embedding model spells this text in pieces of {n_letters / n_pieces:.1f} letters, so it"
            " hardly knows the words and search by meaning will be poor; use a model that was made for its"
            " language",
        )
    return ()


def _letters(text: str) -> NDArray[np.bool_]:
    """Which code points are letters or marks of an alphabetic or syllabic script."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)  # (n,)
    letters: NDArray[np.bool_] = (points | 0x20) - np.uint32(ord("a")) < 26  # of ASCII
    others = np.unique(points[points >= 128])
    known = [point for point in others.tolist() if ALPHABETIC.fullmatch(chr(point))]
    return letters | np.isin(points, known) if known else letters
