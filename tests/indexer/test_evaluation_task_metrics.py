"""Metrics of labels, entities and answers against figures computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.evaluation.task_metrics import (
    accuracy,
    answer_f1,
    auroc,
    exact_match,
    macro_f1,
    normalised,
    span_f1,
)

words = st.lists(st.sampled_from(["oak", "elm", "ash", "the", "fir."]), max_size=6).map(" ".join)


def test_accuracy_and_macro_f1_of_a_rare_label_differ() -> None:
    """x: precision 3/4, recall 1, F1 6/7; y: never right, F1 0."""
    predicted, expected = ["x", "x", "x", "x"], ["x", "x", "x", "y"]
    assert accuracy(predicted, expected) == 0.75
    assert macro_f1(predicted, expected) == pytest.approx((6 / 7 + 0) / 2)


def test_an_entity_counts_only_with_both_borders_and_type() -> None:
    """Of 3 predicted and 3 expected entities one is right: the others have a border or the type wrong."""
    expected = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG"]]
    predicted = [["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "B-PER"]]
    assert span_f1(predicted, expected) == pytest.approx(1 / 3)


def test_sentences_without_entities_give_no_f1_and_no_warning() -> None:
    assert span_f1([["O", "O"]], [["O", "O"]]) == 0.0


@pytest.mark.parametrize(
    ("predicted", "expected", "em", "f1"),
    [
        ("The Norman conquest", ["Norman Conquest"], 1, 1),
        ("U.S. Army", ["the US Army", "army"], 1, 1),
        ("10th and 11th", ["in the 10th and 11th centuries"], 0, 2 * 3 / (3 + 5)),
        ("oak oak", ["oak"], 0, 2 / 3),
        ("elm", ["oak"], 0, 0),
        ("", ["oak"], 0, 0),
        ("", [], 1, 1),
        ("oak", [], 0, 0),
        ("the", ["a"], 1, 1),
    ],
)
def test_answers_are_scored_as_for_squad(predicted: str, expected: list[str], em: float, f1: float) -> None:
    assert exact_match(predicted, expected) == em
    assert answer_f1(predicted, expected) == pytest.approx(f1)


@given(predicted=words, expected=words)
def test_an_exact_match_has_full_f1_and_f1_is_symmetric(predicted: str, expected: str) -> None:
    assert answer_f1(predicted, [expected]) == answer_f1(expected, [predicted])
    if exact_match(predicted, [expected]):
        assert answer_f1(predicted, [expected]) == 1


def test_articles_are_dropped_as_words_only() -> None:
    assert normalised("The theatre, an Antarctic  (a)") == "theatre antarctic"


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    """Pairs (positive, negative): 0.8 > 0.3, 0.8 > 0.5, 0.5 > 0.3, 0.5 = 0.5, which counts half: 3.5 / 4."""
    assert auroc([0.8, 0.5, 0.3, 0.5], [True, True, False, False]) == pytest.approx(3.5 / 4)


def test_auroc_of_one_kind_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs positives and negatives"):
        auroc([0.1, 0.2], [True, True])
