"""The weight of the two legs in hybrid search, chosen on one split and judged on another.

A weight that was chosen on the queries it is judged on looks better than it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain import Fusion
from indexer.evaluation.asking import Ask, ask_all
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.metrics import NDCG

STEPS = 10
"""Weights tried first: 0, 0.1, ..., 1. Then the two at half a step from the best of them."""
N_TRIALS = STEPS + 3
"""At most."""


@dataclass(frozen=True, slots=True)
class Trial:
    dense_weight: float
    ndcg: float
    """Mean nDCG@10."""


@dataclass(frozen=True, slots=True)
class Tuning:
    split: str
    n_queries: int
    trials: Sequence[Trial]
    """By weight."""

    @property
    def best(self) -> Trial:
        """Of equal ones the one nearest to the default, so that nothing is changed without a gain."""
        default = Fusion().dense_weight
        return max(self.trials, key=lambda trial: (trial.ndcg, -abs(trial.dense_weight - default)))

    @property
    def configuration(self) -> Configuration:
        return Configuration("tuned", "hybrid", Fusion(dense_weight=self.best.dense_weight))


def tune(dataset: Dataset, ask: Ask, *, advance: Callable[[], None] = lambda: None) -> Tuning:
    """Ask all queries with each weight. `advance` is called after each query."""

    def tried(weight: float) -> Trial:
        configuration = Configuration("tuning", "hybrid", Fusion(dense_weight=weight))
        measured = ask_all(dataset, configuration, ask, advance=advance)
        return Trial(weight, float(measured.metrics[NDCG].mean()))

    coarse = [tried(step / STEPS) for step in range(STEPS + 1)]
    best = max(coarse, key=lambda trial: trial.ndcg).dense_weight
    between = [round(best + side / (2 * STEPS), 2) for side in (-1, 1)]
    fine = [tried(weight) for weight in between if 0 <= weight <= 1]
    trials = sorted([*coarse, *fine], key=lambda trial: trial.dense_weight)
    return Tuning(dataset.split, len(dataset.queries), trials)
