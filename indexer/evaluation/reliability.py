"""How far probabilities can be believed: the share of right answers among those of each probability."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from indexer.templates import rendered

N_BINS = 10
SIZE, MARGIN = 300, 44
"""Of the picture, in pixels: the side of each square, and what is around it."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Probabilities in (low, high]; the first bin also has 0."""

    low: float
    high: float
    n: int
    probability: float
    """Their mean; 0 of an empty bin."""
    share_right: float


def reliability(
    probabilities: Sequence[float], is_right: Sequence[bool], *, n_bins: int = N_BINS
) -> list[Bin]:
    """Bins of equal width. Source: Guo et al. 2017, section 2, equation 1.

    Args:
        probabilities: (n,), 0..1.
    """
    probability = np.asarray(probabilities, dtype=np.float64)
    right = np.asarray(is_right, dtype=np.float64)
    places = np.clip(np.ceil(probability * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    counts = np.bincount(places, minlength=n_bins)  # (m,)
    sums = [np.bincount(places, weights=of, minlength=n_bins) for of in (probability, right)]
    means = [of / np.maximum(counts, 1) for of in sums]
    return [
        Bin(i / n_bins, (i + 1) / n_bins, int(counts[i]), float(means[0][i]), float(means[1][i]))
        for i in range(n_bins)
    ]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """By how much probability and share of right answers differ on average.

    ECE = sum_b n_b / n |share right in b - mean probability in b|. Source: Guo et al. 2017, equation 3.

    >>> round(expected_calibration_error(reliability([0.9, 0.8, 0.1], [True, False, False], n_bins=2)), 4)
    0.2667
    """
    n = sum(each.n for each in bins)
    return sum(each.n * abs(each.share_right - each.probability) for each in bins) / n


def write_reliability(diagrams: Mapping[str, Sequence[Bin]], picture: Path) -> None:
    """Draw the diagrams beside each other as SVG: what lies on the diagonal can be believed as it is.

    Args:
        diagrams: what the probability is of, to its bins.
    """
    drawn = rendered("indexer.evaluation", "reliability.svg.j2", diagrams=diagrams, size=SIZE, margin=MARGIN)
    picture.write_text(drawn, encoding="utf-8")
