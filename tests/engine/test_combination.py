"""Combining a reranker's logits with the first stage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.combination import Combination

METHODS = ("linear", "logistic", "standard", "rrf")


@pytest.mark.parametrize("method", METHODS)
def test_a_lone_candidate_has_a_finite_score(method: str) -> None:
    combined = Combination(method, 1.0, 1.0).combined(np.array([3.0]), np.array([0.4]))  # type: ignore[arg-type]
    assert np.isfinite(combined).all()


@pytest.mark.parametrize("method", METHODS)
@given(
    logits=st.lists(st.floats(-20, 20), min_size=1, max_size=20),
    tail=st.lists(st.floats(0, 0.5), max_size=10),
)
def test_what_was_not_reranked_comes_behind_what_was_and_changes_nothing(
    method: str, logits: list[float], tail: list[float]
) -> None:
    """Where the candidates are the first of the first stage."""
    combination = Combination(method, 0.7, 0.3)  # type: ignore[arg-type]
    first = np.linspace(1.0, 0.5, len(logits))
    alone = combination.combined(np.array(logits), first)
    together = combination.combined(
        np.array([*logits, *[np.nan] * len(tail)]), np.array([*first, *sorted(tail, reverse=True)])
    )
    assert together[: len(logits)].tolist() == alone.tolist()
    assert (together[len(logits) :] <= together[: len(logits)].min() + 1e-9).all()
    assert (np.diff(together[len(logits) :]) <= 1e-9).all()


def test_saturated_probabilities_do_not_tie() -> None:
    logits = np.array([40.0, 50.0, 60.0])
    assert np.argsort(-Combination().combined(logits, np.zeros(3))).tolist() == [2, 1, 0]


def test_logistic_scores_are_of_probabilities() -> None:
    combined = Combination("logistic", 1.0, 2.0).combined(np.array([0.0, 1000.0]), np.array([0.5, 0.25]))
    assert combined.tolist() == [1.5, 1.5]


def test_standard_scores_are_those_of_the_candidates() -> None:
    combined = Combination("standard", 1.0, 1.0).combined(
        np.array([1.0, 3.0, np.nan]), np.array([1.0, 0.0, 0.0])
    )
    assert combined.tolist() == [0.0, 0.0, -2.0]


def test_reciprocal_ranks_are_counted_among_the_candidates() -> None:
    combined = Combination("rrf", 1.0, 1.0).combined(np.array([1.0, 3.0, np.nan]), np.array([1.0, 0.5, 0.2]))
    assert combined == pytest.approx([1 / 62 + 1 / 61, 1 / 61 + 1 / 62, 1 / 62 + 1 / 63])
