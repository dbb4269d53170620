"""Metrics of rankings, computed by trec_eval.

A run is a list of document ids per query, best first. trec_eval would order equal scores its own way, so it
is given the ranks: the order that users see is the order that is measured.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pytrec_eval
from numpy.typing import NDArray

from indexer.evaluation.dataset import Qrels

Run = Mapping[str, Sequence[str]]
"""Query id to document ids, best first."""
Values = NDArray[np.float64]

DEPTH = 100
"""Documents of a ranking that are looked at."""
NDCG, MRR, RECALL, MAP = "nDCG@10", "MRR@10", f"Recall@{DEPTH}", f"MAP@{DEPTH}"
METRICS = (NDCG, MRR, RECALL, MAP)
"""nDCG with linear gain and 1 / log2(rank + 1), as trec_eval and BEIR have it."""


def measure(run: Run, qrels: Qrels) -> dict[str, Values]:
    """Each metric of each judged query; a query without hits, or not in the run, has 0.

    >>> measure({"q": ["a", "b", "c"]}, {"q": {"b": 1, "z": 1}})["MRR@10"]
    array([0.5])

    Returns:
        Metric to (q,), in the order of `qrels`.
    """
    whole = _evaluate(run, qrels, {"ndcg_cut.10", f"recall.{DEPTH}", "map"}, depth=DEPTH)
    top = _evaluate(run, qrels, {"recip_rank"}, depth=10)  # it has no cut of its own
    return {
        NDCG: _values(whole, "ndcg_cut_10"),
        MRR: _values(top, "recip_rank"),
        RECALL: _values(whole, f"recall_{DEPTH}"),
        MAP: _values(whole, "map"),
    }


def _evaluate(run: Run, qrels: Qrels, measures: set[str], *, depth: int) -> Sequence[Mapping[str, float]]:
    """By measure, of each query of `qrels`.

    trec_eval gets numbers instead of ids: it reads strings of C, and an id may hold the NUL that ends them.
    """
    numbers: dict[str, str] = {}

    def number(document_id: str) -> str:
        return numbers.setdefault(document_id, str(len(numbers)))

    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for query, (query_id, grades) in enumerate(qrels.items()):
        judged[str(query)] = {number(document_id): grade for document_id, grade in grades.items()}
        hits = run.get(query_id, ())[:depth]
        ranked[str(query)] = {number(document_id): -float(rank) for rank, document_id in enumerate(hits)}
    evaluated = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(ranked)
    return [evaluated[query] for query in judged]


def _values(evaluated: Sequence[Mapping[str, float]], measure_name: str) -> Values:
    return np.array([of_query[measure_name] for of_query in evaluated])
