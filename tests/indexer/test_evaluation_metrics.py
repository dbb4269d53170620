"""Metrics against figures computed by hand, and what is said of their uncertainty."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.evaluation.metrics import MAP, MRR, NDCG, RECALL, measure
from indexer.evaluation.statistics import estimate, holm, paired_p_value

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"d": 1, "e": 1}, "q3": {"f": 1}}
RUN = {"q1": ["c", "a", "x", "b"], "q2": [*(f"x{i}" for i in range(10)), "d"]}


def test_metrics_are_those_computed_by_hand() -> None:
    """q1 finds a (2) at rank 2 and b (1) at rank 4; q2 finds one of two at rank 11; q3 finds nothing.

    nDCG@10 of q1: (2 / log2 3 + 1 / log2 5) / (2 / log2 2 + 1 / log2 3) = 1.6925 / 2.6309 = 0.6433
    MRR@10: 1/2, and 0 for rank 11. Recall@100: 2/2 and 1/2.
    MAP@100: q1 (1/2 + 2/4) / 2 = 1/2; q2 (1/11) / 2 = 1/22.
    """
    measured = measure(RUN, QRELS)
    expected_ndcg = (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3))
    assert measured[NDCG] == pytest.approx([expected_ndcg, 0, 0])
    assert measured[MRR] == pytest.approx([1 / 2, 0, 0])
    assert measured[RECALL] == pytest.approx([1, 1 / 2, 0])
    assert measured[MAP] == pytest.approx([1 / 2, 1 / 22, 0])


def test_hits_beyond_the_hundredth_do_not_count() -> None:
    others = [f"x{i}" for i in range(100)]
    measured = measure({"q3": [*others, "f"]}, {"q3": {"f": 1}})
    assert [values.tolist() for values in measured.values()] == [[0.0]] * 4
    assert measure({"q3": [*others[:99], "f"]}, {"q3": {"f": 1}})[RECALL] == [1.0]


def test_queries_without_judgement_do_not_count() -> None:
    measured = measure({"q3": ["f"], "other": ["f"]}, {"q3": {"f": 1}})
    assert {metric: values.tolist() for metric, values in measured.items()} == {
        metric: [1.0] for metric in (NDCG, MRR, RECALL, MAP)
    }


def test_ids_are_told_apart_behind_a_nul() -> None:
    """C strings end there: one query was missing, and documents were taken for each other."""
    qrels = {"q\0": {"d\0b": 1}, "q\0\0": {"d\0a": 1}}
    assert measure({"q\0": ["d\0a", "d\0b"], "q\0\0": ["d\0a"]}, qrels)[MRR].tolist() == [0.5, 1.0]


@given(
    ranking=st.permutations([f"d{i}" for i in range(12)]), relevant=st.sets(st.integers(0, 11), min_size=1)
)
def test_the_given_order_is_what_is_measured(ranking: list[str], relevant: set[int]) -> None:
    qrels = {"q": {f"d{i}": 1 for i in relevant}}
    gains = [document_id in qrels["q"] for document_id in ranking]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    ndcg = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:10])) / ideal
    first = gains.index(True) + 1
    measured = measure({"q": ranking}, qrels)
    assert measured[NDCG][0] == pytest.approx(ndcg)
    assert measured[MRR][0] == pytest.approx(1 / first if first <= 10 else 0)


def test_the_interval_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    values = np.random.default_rng(1).random(50)
    assert estimate(values) == estimate(values)
    assert estimate(values, seed=1) != estimate(values, seed=2)


def test_the_interval_is_about_that_of_the_normal_distribution_for_many_queries() -> None:
    """mean -+ 1.96 standard errors."""
    values = np.random.default_rng(1).random(1000)
    found = estimate(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(1000)
    assert found.low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05 * half)


def test_one_query_says_nothing_of_others() -> None:
    found = estimate(np.array([0.4]))
    assert (found.mean, found.low, found.high) == (0.4, None, None)


def test_the_p_value_is_the_share_of_sign_changes_with_as_great_a_difference() -> None:
    """Differences 1, 0, 0, 1, 1: of the 8 sign patterns of the three, +++ and --- are as great: 2/8."""
    first, second = np.array([1.0, 0, 0, 1, 1]), np.zeros(5)
    assert paired_p_value(first, second) == pytest.approx(0.25)
    assert paired_p_value(second, first) == pytest.approx(0.25)


def test_equal_configurations_do_not_differ() -> None:
    values = np.random.default_rng(1).random(30)
    assert paired_p_value(values, values) == 1.0


def test_the_p_value_is_the_same_for_the_same_seed() -> None:
    first, second = np.random.default_rng(1).random((2, 100))
    assert paired_p_value(first, second) == paired_p_value(first, second)
    assert paired_p_value(first, second, seed=1) != paired_p_value(first, second, seed=2)


def test_a_steady_difference_is_significant_and_noise_is_not() -> None:
    random = np.random.default_rng(1)
    first = random.random(100)
    assert paired_p_value(first, first + 0.05) < 0.001
    assert paired_p_value(first, first + random.normal(0, 0.1, 100)) > 0.05


def test_holm_multiplies_the_least_by_the_number_of_tests_and_keeps_the_order() -> None:
    """0.01 * 3; 0.03 * 2; 0.04 * 1 would be less than the one before, so that counts."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
