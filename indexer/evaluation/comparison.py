"""Configurations against each other, metric by metric and query by query."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from indexer.evaluation.asking import Measured
from indexer.evaluation.metrics import METRICS, NDCG
from indexer.evaluation.statistics import holm, paired_p_value


@dataclass(frozen=True, slots=True)
class Difference:
    """Of two configurations in the mean of a metric."""

    metric: str
    first: str
    second: str
    difference: float
    """Mean of the second less mean of the first."""
    p_value: float
    """Corrected for the number of pairs compared in this metric."""


def differences(measured: Sequence[Measured]) -> list[Difference]:
    """Of each pair in each metric."""
    pairs = list(combinations(measured, 2))
    found = []
    for metric in METRICS:
        corrected = holm([paired_p_value(a.metrics[metric], b.metrics[metric]) for a, b in pairs])
        found += [
            Difference(metric, a.name, b.name, float((b.metrics[metric] - a.metrics[metric]).mean()), p_value)
            for (a, b), p_value in zip(pairs, corrected, strict=True)
        ]
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """Of one query in nDCG@10."""

    query_id: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        return self.second - self.first


def changes(first: Measured, second: Measured) -> list[Change]:
    """Of each query, greatest win of the second first, equal ones by query id."""
    values = zip(first.run, first.metrics[NDCG].tolist(), second.metrics[NDCG].tolist(), strict=True)
    return sorted(
        (Change(*each) for each in values), key=lambda change: (-change.difference, change.query_id)
    )
