"""How hybrid search fuses and how deep it looks, chosen on one split and judged on another.

What was chosen on the queries it is judged on looks better than it is. One thing after the other: first the
weight of the two legs, then the method and the depth at the best weight, then how many documents are
reranked at the best of these.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from app.domain import Fusion, SearchSettings
from indexer.evaluation.asking import Ask, ask_all
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.metrics import NDCG

STEPS = 10
"""Weights tried first: 0, 0.1, ..., 1. Then the two at half a step from the best of them."""
DEPTHS = (50, 100, 400, 800)
"""Beside the default."""
CANDIDATES = (10, 20, 50, 100)
N_TRIALS = STEPS + 3 + 1 + len(DEPTHS)
"""At most, without reranking."""
N_RERANKED_TRIALS = N_TRIALS + len(CANDIDATES)


@dataclass(frozen=True, slots=True)
class Trial:
    fusion: Fusion
    candidates: int | None
    """Documents that were reranked; None: without reranking."""
    ndcg: float
    """Mean nDCG@10."""

    @property
    def nearness(self) -> tuple[bool, float, float, int]:
        """To the defaults; greater is nearer. Of candidates, fewer are faster."""
        default = Fusion()
        return (
            self.fusion.method == default.method,
            -abs(self.fusion.dense_weight - default.dense_weight),
            -abs(self.fusion.depth - default.depth),
            -(self.candidates or 0),
        )


@dataclass(frozen=True, slots=True)
class Tuning:
    split: str
    n_queries: int
    trials: Sequence[Trial]
    """Those of the weight first, by weight."""

    @property
    def best(self) -> Trial:
        """Of equal ones the one nearest to the defaults, so that nothing is changed without a gain.

        Where documents were reranked, only trials with reranking can be the best: it is wanted as it is.
        """
        reranked = [trial for trial in self.trials if trial.candidates is not None]
        return max(reranked or self.trials, key=lambda trial: (trial.ndcg, *trial.nearness))

    @property
    def settings(self) -> SearchSettings:
        return SearchSettings(self.best.fusion, self.best.candidates)

    @property
    def configuration(self) -> Configuration:
        return _configuration("tuned", self.best.fusion, self.best.candidates)

    @property
    def weights(self) -> list[tuple[float, float]]:
        """(weight of the dense leg, nDCG@10) of the trials that differ in nothing else."""
        return [
            (trial.fusion.dense_weight, trial.ndcg)
            for trial in self.trials
            if trial.fusion == Fusion(dense_weight=trial.fusion.dense_weight) and trial.candidates is None
        ]


def tune(
    dataset: Dataset, ask: Ask, *, is_reranked: bool = False, advance: Callable[[], None] = lambda: None
) -> Tuning:
    """Ask all queries with each setting. `advance` is called after each query."""

    def tried(fusion: Fusion, candidates: int | None = None) -> Trial:
        measured = ask_all(dataset, _configuration("tuning", fusion, candidates), ask, advance=advance)
        return Trial(fusion, candidates, float(measured.metrics[NDCG].mean()))

    weights = _tried_weights(tried)
    fusion = _best(weights).fusion
    others = [tried(Fusion("rrf")), *(tried(replace(fusion, depth=depth)) for depth in DEPTHS)]
    trials = [*weights, *others]
    if is_reranked:
        fusion = _best(trials).fusion
        trials += [tried(fusion, candidates) for candidates in CANDIDATES]
    return Tuning(dataset.split, len(dataset.queries), trials)


def _tried_weights(tried: Callable[[Fusion], Trial]) -> list[Trial]:
    """By weight."""
    coarse = [tried(Fusion(dense_weight=step / STEPS)) for step in range(STEPS + 1)]
    best = max(coarse, key=lambda trial: trial.ndcg).fusion.dense_weight
    between = [round(best + side / (2 * STEPS), 2) for side in (-1, 1)]
    fine = [tried(Fusion(dense_weight=weight)) for weight in between if 0 <= weight <= 1]
    return sorted([*coarse, *fine], key=lambda trial: trial.fusion.dense_weight)


def _best(trials: Iterable[Trial]) -> Trial:
    return max(trials, key=lambda trial: (trial.ndcg, *trial.nearness))


def _configuration(name: str, fusion: Fusion, candidates: int | None) -> Configuration:
    return Configuration(name, "hybrid", fusion, is_reranked=candidates is not None, candidates=candidates)
