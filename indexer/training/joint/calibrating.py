"""What is fitted after training: how likely an answer is right, and how a reranker's logit and the first
stage's score make one ranking. A few numbers, of questions that took no part in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from app.engine.combination import Combination
from app.errors import InvalidInput
from indexer.evaluation.dataset import Qrels
from indexer.evaluation.metrics import NDCG, measure

Floats = NDArray[np.float64]

BY_RERANKER = Combination("linear", rerank=1.0, first_stage=0.0)
BY_FIRST_STAGE = Combination("linear", rerank=0.0, first_stage=1.0)
COMBINATIONS = (
    BY_RERANKER,
    *(Combination("linear", 1.0, weight) for weight in np.geomspace(2.0, 200.0, 25).round(1).tolist()),
    *(Combination("logistic", 1.0, weight) for weight in np.geomspace(0.5, 50.0, 25).round(2).tolist()),
)
"""The first stage's score lies in 0..1, and gets the weight beside a logit or its probability."""

KEPT_GAIN = 0.5
"""Of the most that could be gained. The sets that calibrate are of the kinds that the model was trained on,
and flatter it: half of what it gains there is given for trusting the first stage more where it is a
stranger."""


def fit_answer(margins: Floats, relevances: Floats, is_right: NDArray[np.bool_]) -> dict[str, float]:
    """Weights of `app.engine.span_reader.AnswerCalibration`: a logistic regression (Platt 1999).

    Args:
        margins: (n,), of the best span over "no answer", in logits.
        relevances: (n,), logits; zeros of a reader that does not judge relevance.
        is_right: (n,), whether the question has an answer in its text.

    Raises:
        InvalidInput: only right ones, or only wrong ones.
    """
    if len(set(is_right.tolist())) < 2:
        raise InvalidInput(
            "a calibration needs questions with an answer in their text and questions without one; there is "
            "only one of these kinds"
        )
    features = np.column_stack([margins, relevances])  # (n, 2)
    fitted = LogisticRegression(C=1e6, max_iter=1000).fit(features, is_right)
    span, relevance = (float(weight) for weight in fitted.coef_[0])
    return {
        "span": round(span, 4),
        "relevance": round(relevance, 4),
        "bias": round(float(fitted.intercept_[0]), 4),
    }


@dataclass(frozen=True, slots=True)
class Candidates:
    """A query's hits as the first stage ranks them."""

    document_ids: Sequence[str]
    first_stage: Floats
    """(n,), 0..1."""
    logits: Floats
    """(n,), NaN for what was not reranked."""

    def ranked(self, combination: Combination) -> list[str]:
        scores = combination.combined(self.logits, self.first_stage)
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], self.document_ids[i]))
        return [self.document_ids[i] for i in order]


@dataclass(frozen=True, slots=True)
class Fitted:
    combination: Combination
    ndcg: Mapping[str, Mapping[Combination, float]]
    """Set of queries to combination to nDCG@10; also of `BY_FIRST_STAGE` and `BY_RERANKER`."""


def fit_combination(candidates: Mapping[str, Mapping[str, Candidates]], qrels: Mapping[str, Qrels]) -> Fitted:
    """How reranker and first stage make one ranking that gains on every set, and dares no more than it must.

    A gain is that of the set of queries where it is least: a combination that is best on average may lose on
    a set of another kind. Of the method that gains most, the greatest weight of the first stage that keeps
    `KEPT_GAIN`.

    Args:
        candidates: set of queries to query id to its candidates.
        qrels: of the same sets.
    """
    measured = {
        name: {each: _ndcg(of_set, qrels[name], each) for each in (*COMBINATIONS, BY_FIRST_STAGE)}
        for name, of_set in candidates.items()
    }
    gains = {
        each: min(of_set[each] - of_set[BY_FIRST_STAGE] for of_set in measured.values())
        for each in COMBINATIONS
    }
    best = max(COMBINATIONS, key=lambda each: (gains[each], each.first_stage))
    careful = [
        each for each in COMBINATIONS if each.method == best.method and gains[each] >= KEPT_GAIN * gains[best]
    ]
    return Fitted(max(careful, key=lambda each: each.first_stage, default=best), measured)


def _ndcg(candidates: Mapping[str, Candidates], qrels: Qrels, combination: Combination) -> float:
    run = {query_id: of_query.ranked(combination) for query_id, of_query in candidates.items()}
    judged = {query_id: qrels[query_id] for query_id in candidates}
    return float(np.mean(measure(run, judged)[NDCG]))
