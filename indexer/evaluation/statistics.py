"""How sure a mean over queries is, and whether two configurations differ.

Queries are a sample: another sample would give other means. Sources: Sakai 2006 (bootstrap in retrieval
evaluation), Smucker, Allan and Carterette 2007 (the randomisation test), Holm 1979 (many comparisons).
Everything is seeded: the same values give the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from indexer.evaluation.metrics import Values

SEED = 20
N_RESAMPLES = 9_999
CONFIDENCE = 0.95
BATCH_VALUES = 4_000_000
"""Numbers drawn at a time: 32 MB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with the bootstrap's percentile interval around it; None for a single query."""

    mean: float
    low: float | None
    high: float | None


def estimate(values: Values, *, seed: int = SEED) -> Estimate:
    """
    Args:
        values: (q,), one per query, q > 0.
    """
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, None, None)
    interval = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=N_RESAMPLES,
        batch=_batch(len(values)),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high))


def paired_p_value(first: Values, second: Values, *, seed: int = SEED) -> float:
    """Two-sided randomisation test of "the two do equally well".

    If they did, the sign of each query's difference would be a coin toss: the share of such tosses with a
    mean difference at least as great as the one observed.

    Args:
        first, second: (q,), of the same queries in the same order.
    """
    differences = first - second
    if not differences.any():
        return 1.0
    test = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=N_RESAMPLES,
        batch=_batch(len(differences)),
        rng=np.random.default_rng(seed),
    )
    return float(test.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Raise p-values so that the chance of any false discovery among them stays bounded.

    In ascending order, p'[i] = max over j <= i of min(1, (m - j) p[j]), counted from 0. Source: Holm 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    greatest = 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        greatest = max(greatest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = greatest
    return adjusted


def _batch(n_values: int) -> int:
    return max(1, BATCH_VALUES // n_values)
