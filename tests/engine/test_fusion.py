"""Fusion against its formulas, written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.fusion import convex_combination, reciprocal_rank_fusion

cosines = st.floats(-1, 1, width=32)
bm25s = st.floats(0, 100, width=32)
legs = st.lists(st.tuples(cosines, bm25s), min_size=1, max_size=30)


def test_convex_combination_is_the_weighted_mean_of_both_stretched_scores() -> None:
    """0.7 * 1.5 / 1.8 + 0.3 * 2 / 8 and 0.7 * 1 + 0.3 * 0 and 0.7 * 0.9 / 1.8 + 0.3 * 1."""
    fused = convex_combination(np.array([0.5, 0.8, -0.1]), np.array([2.0, 0.0, 8.0]), dense_weight=0.7)
    assert fused == pytest.approx([0.6583333, 0.7, 0.65])


def test_reciprocal_rank_fusion_adds_reciprocal_ranks_of_both_legs() -> None:
    """1/62 + 1/62 and 1/61 and 1/63 + 1/61; no word means no rank in the lexical leg."""
    fused = reciprocal_rank_fusion(np.array([0.5, 0.8, -0.1]), np.array([2.0, 0.0, 8.0]))
    assert fused == pytest.approx([2 / 62, 1 / 61, 1 / 63 + 1 / 61])


def test_without_any_word_the_dense_leg_decides() -> None:
    dense, none = np.array([0.1, 0.9]), np.zeros(2)
    assert convex_combination(dense, none, dense_weight=0.5).argmax() == 1
    assert reciprocal_rank_fusion(dense, none).argmax() == 1


@given(legs, st.floats(0, 1))
def test_convex_combination_stays_between_0_and_1(pairs: list[tuple[float, float]], weight: float) -> None:
    dense, lexical = np.array(pairs, dtype=np.float64).T
    fused = convex_combination(dense, lexical, dense_weight=weight)
    assert np.all((fused >= 0) & (fused <= 1 + 1e-9))


@given(legs, st.integers(0, 29))
def test_what_is_at_least_as_good_in_both_legs_is_fused_at_least_as_high(
    pairs: list[tuple[float, float]], place: int
) -> None:
    dense, lexical = np.array(pairs, dtype=np.float64).T
    worse = (dense <= dense[place % len(dense)]) & (lexical <= lexical[place % len(dense)])
    for fused in (
        convex_combination(dense, lexical, dense_weight=0.5),
        reciprocal_rank_fusion(dense, lexical),
    ):
        assert np.all(fused[worse] <= fused[place % len(dense)] + 1e-12)
