"""One ranking out of a reranker's logits and the first stage's scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.engine.fusion import RRF_CONSTANT

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Combination:
    """Weights that were learned with the reranker, on training data."""

    method: Literal["linear", "logistic", "standard", "rrf"] = "linear"
    rerank: float = 1.0
    first_stage: float = 0.0

    @classmethod
    def of(cls, calibration: Mapping[str, Any], default: Self) -> Self:
        """From the calibration of a model, or the default where it says nothing."""
        fitted = calibration.get("combination")
        return default if fitted is None else cls(**fitted)

    def combined(self, logits: Scores, first_stage: Scores) -> Scores:
        """
        linear:   c[i] = r z[i] + f s[i]
        logistic: c[i] = r / (1 + exp(-z[i])) + f s[i], so that no logit outweighs all else
        standard: c[i] = r (z[i] - mean z) / std z + f (s[i] - mean s) / std s, over the candidates
        rrf:      c[i] = r / (60 + rank of z[i]) + f / (60 + rank of s[i]), over the candidates

        What was not reranked counts as if the reranker liked it as little as the candidate it liked least.

        >>> Combination("linear", rerank=1.0, first_stage=2.0).combined(
        ...     np.array([0.5, 3.0, np.nan]), np.array([1.0, 0.5, 0.25])
        ... )
        array([2.5, 4. , 1. ])

        Args:
            logits: z, (n,); NaN for what was not reranked; at least one is known.
            first_stage: s, (n,), 0..1.

        Returns:
            (n,), of which the order alone has a meaning.
        """
        is_candidate = ~np.isnan(logits)
        filled = np.where(is_candidate, logits, logits[is_candidate].min())
        if self.method == "linear":
            return self.rerank * filled + self.first_stage * first_stage
        if self.method == "logistic":
            likely: Scores = expit(filled)
            return self.rerank * likely + self.first_stage * first_stage
        measure = _standardised if self.method == "standard" else _reciprocal_ranks
        return self.rerank * measure(filled, is_candidate) + self.first_stage * measure(
            first_stage, is_candidate
        )


def _standardised(scores: Scores, is_candidate: NDArray[np.bool_]) -> Scores:
    chosen = scores[is_candidate]
    spread = float(chosen.std())
    centred: Scores = scores - chosen.mean()
    return centred / spread if spread > 0 else centred


def _reciprocal_ranks(scores: Scores, is_candidate: NDArray[np.bool_]) -> Scores:
    """Ranks among the candidates, from 1; what is not one ranks as its score would among them."""
    ascending = np.sort(scores[is_candidate])
    n_better = len(ascending) - np.searchsorted(ascending, scores, side="right")
    ranks: Scores = 1 / (RRF_CONSTANT + 1.0 + n_better)
    return ranks
