"""One HTML file without anything from outside: figures, plots and the queries that changed most."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from indexer.evaluation.asking import Measured
from indexer.evaluation.comparison import Change, changes
from indexer.evaluation.metrics import METRICS, NDCG
from indexer.evaluation.results import Evaluation
from indexer.templates import rendered

N_SHOWN = 10
"""Queries at each end of a table."""
MAX_BARS = 600
"""Queries in a plot of differences; of more, evenly spread ones are drawn."""
N_BINS = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """Two configurations, query by query."""

    first: str
    second: str
    wins: Sequence[Change]
    losses: Sequence[Change]
    n_wins: int
    n_losses: int
    n_equal: int
    bars: Sequence[float]
    """Differences in descending order."""
    limit: float
    """The greatest of them, whatever its sign; 1 where there is none."""


def render(evaluation: Evaluation, found: dict[str, Any]) -> str:
    """`found` is what `results` gives of the same evaluation."""
    return rendered(
        "indexer.evaluation",
        "report.html.j2",
        found=found,
        metrics=METRICS,
        queries=evaluation.dataset.queries,
        pairs=[_pair(a, b) for a, b in combinations(evaluation.measured, 2)],
        hardest=[(each.name, _hardest(each)) for each in evaluation.measured],
        histograms=[(each.name, _histogram(each)) for each in evaluation.measured],
        weights=evaluation.tuning and evaluation.tuning.weights,
        stages=list(dict.fromkeys(stage for each in evaluation.measured for stage in each.latencies_ms)),
    )


def _pair(first: Measured, second: Measured) -> Pair:
    found = changes(first, second)
    wins = [change for change in found if change.difference > 0]
    losses = [change for change in reversed(found) if change.difference < 0]
    drawn = np.linspace(0, len(found) - 1, min(len(found), MAX_BARS)).astype(int)
    return Pair(
        first=first.name,
        second=second.name,
        wins=wins[:N_SHOWN],
        losses=losses[:N_SHOWN],
        n_wins=len(wins),
        n_losses=len(losses),
        n_equal=len(found) - len(wins) - len(losses),
        bars=[found[i].difference for i in drawn],
        limit=max(abs(found[0].difference), abs(found[-1].difference)) or 1.0,
    )


def _hardest(measured: Measured) -> list[tuple[str, float]]:
    """(query id, nDCG@10) of the worst queries."""
    values = zip(measured.run, measured.metrics[NDCG].tolist(), strict=True)
    return sorted(values, key=lambda each: (each[1], each[0]))[:N_SHOWN]


def _histogram(measured: Measured) -> list[int]:
    """Queries whose nDCG@10 is in 0..0.1, 0.1..0.2, ..., 0.9..1."""
    counts: list[int] = np.histogram(measured.metrics[NDCG], bins=N_BINS, range=(0, 1))[0].tolist()
    return counts
