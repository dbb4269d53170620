"""The formula by which passages are ranked, the same for the rows in memory as for Tantivy's files."""

import math

K1 = 1.2
B = 0.75
"""Tantivy's constants, not adjustable there."""

SCORE_DECIMALS = 4
"""Kept of a score, so that equal passages tie although one is scored in memory and one by the engine."""


def inverse_document_frequency(n_matching: int, n_passages: int) -> float:
    """idf = ln(1 + (N - n + 0.5) / (n + 0.5)), always positive.

    Source: Robertson and Zaragoza 2009, section 3.4, with the 1 that Lucene adds.
    """
    return math.log(1 + (n_passages - n_matching + 0.5) / (n_matching + 0.5))


def term_score(count: int, *, idf: float, n_terms: int, mean_terms: float) -> float:
    """idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b * |d| / mean |d|)), with |d| as the engine stores it."""
    length = stored_length(n_terms) / mean_terms
    return idf * (K1 + 1) * count / (count + K1 * (1 - B + B * length))


def stored_length(n_terms: int) -> int:
    """The length that fits the one byte kept per passage: exact up to 40, then four significant bits.

    >>> [stored_length(n) for n in (7, 40, 41, 57, 300)]
    [7, 40, 40, 56, 280]
    """
    above = n_terms - 24
    if above < 16:
        return n_terms
    shift = above.bit_length() - 4
    return 24 + (above >> shift << shift)
