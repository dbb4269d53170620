"""Fusion: one ranking out of the scores of two legs that know nothing of each other's scale."""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

LEAST_COSINE = -1.0
LEAST_BM25 = 0.0

RRF_CONSTANT = 60
"""Source: Cormack, Clarke and Buettcher 2009, section 2, where results hardly depend on it."""


def convex_combination(dense: Scores, lexical: Scores, *, dense_weight: float) -> Scores:
    """Weigh the two legs, each first stretched to 0..1.

    f[i] = w (dense[i] + 1) / (max dense + 1) + (1 - w) lexical[i] / max lexical

    The lower end of each scale is the least value that the score can take at all, not the least one among
    the candidates: so f depends on the best candidate of each leg alone, not on how many were retrieved, and
    a lone candidate is not worth 0. Source: Bruch, Gai and Ingber 2022, section 4.1 (TM2C2).

    >>> convex_combination(np.array([0.6, 0.2]), np.array([0.0, 8.0]), dense_weight=0.75).round(4)
    array([0.75  , 0.8125])

    Args:
        dense: (n,), cosines.
        lexical: (n,), BM25 scores, 0 for what has no word of the query.
        dense_weight: 0..1.

    Returns:
        (n,), 0..1.
    """
    dense_share = _stretched(dense, least=LEAST_COSINE)
    lexical_share = _stretched(lexical, least=LEAST_BM25)
    return dense_weight * dense_share + (1 - dense_weight) * lexical_share


def reciprocal_rank_fusion(dense: Scores, lexical: Scores) -> Scores:
    """Add up 1 / (60 + rank), ranks from 1, equal scores sharing the best of their ranks.

    What has no word of the query gets nothing from the lexical leg. Source: Cormack et al. 2009, section 2.

    >>> reciprocal_rank_fusion(np.array([0.6, 0.2]), np.array([0.0, 8.0])).round(5)
    array([0.01639, 0.03252])

    Args and returns: as `convex_combination`; at most 2 / 61.
    """
    by_words = np.where(lexical > LEAST_BM25, 1 / (RRF_CONSTANT + _ranks(lexical)), 0.0)
    fused: Scores = 1 / (RRF_CONSTANT + _ranks(dense)) + by_words
    return fused


def _stretched(scores: Scores, *, least: float) -> Scores:
    span = scores.max(initial=least) - least
    stretched: Scores = (scores - least) / span if span > 0 else np.zeros_like(scores)
    return stretched


def _ranks(scores: Scores) -> NDArray[np.int64]:
    """1 for the greatest; 1 + how many are greater."""
    ascending = np.sort(scores)
    return len(scores) - np.searchsorted(ascending, scores, side="right") + 1
