"""Scores of words to entities."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.entities import Word, entities, iob2_follows, likeliest_path, tagged_words

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
FOLLOWS = iob2_follows(LABELS)


def probabilities(seed: int, n: int) -> Any:
    """(n, k)"""
    return np.random.default_rng(seed).dirichlet([0.5] * len(LABELS), n)


def is_iob2(labels: list[str]) -> bool:
    before = ["O", *labels[:-1]]
    return all(not b.startswith("I-") or a[2:] == b[2:] for a, b in zip(before, labels, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("O", "B-PER", True),
        ("O", "I-PER", False),
        ("B-PER", "I-PER", True),
        ("I-PER", "I-PER", True),
        ("B-LOC", "I-PER", False),
        ("I-LOC", "I-PER", False),
        ("I-LOC", "B-PER", True),
        ("I-PER", "O", True),
    ],
)
def test_what_may_stand_behind_a_tag(before: str, after: str, allowed: bool) -> None:
    assert FOLLOWS[1 + LABELS.index(before), LABELS.index(after)] == allowed


def test_no_text_begins_inside_an_entity() -> None:
    assert FOLLOWS[0].tolist() == [True, True, False, True, False]


@given(seed=st.integers(0, 10_000), n=st.integers(1, 5))
def test_the_path_is_the_likeliest_of_all_that_are_allowed(seed: int, n: int) -> None:
    scores = probabilities(seed, n)
    allowed = [
        path
        for path in itertools.product(range(len(LABELS)), repeat=n)
        if is_iob2([LABELS[label] for label in path])
    ]
    best = max(allowed, key=lambda path: np.prod(scores[np.arange(n), list(path)]))
    assert likeliest_path(scores, FOLLOWS).tolist() == list(best)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60))
def test_a_path_that_is_allowed_anyhow_is_what_each_word_says(seed: int, n: int) -> None:
    scores = probabilities(seed, n)
    alone = scores.argmax(axis=1)
    if is_iob2([LABELS[label] for label in alone]):
        assert likeliest_path(scores, FOLLOWS).tolist() == alone.tolist()


def test_impossible_labels_cost_nothing_where_they_are_not_on_the_path() -> None:
    scores = np.array([[0.0, 0.4, 0.6, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    assert [LABELS[label] for label in likeliest_path(scores, FOLLOWS)] == ["B-PER", "I-PER"]


def test_words_of_one_entity_agree_on_its_kind() -> None:
    """`New` is surest alone; `York` cannot go on with a person."""
    scores = np.array([[0.1, 0.0, 0.0, 0.9, 0.0], [0.05, 0.0, 0.5, 0.0, 0.45]])
    places = np.array([0, 4]), np.array([3, 8])
    words = np.arange(2, dtype=np.int32)

    def found(follows: Any) -> list[tuple[str, str]]:
        spoken = tagged_words(scores, words, *places, labels=LABELS, aggregation="word", follows=follows)
        return [(e.entity_group, e.word) for e in entities("New York", spoken)]

    assert found(FOLLOWS) == [("LOC", "New York")]
    assert found(None) == [("LOC", "New"), ("PER", "York")]


def test_words_of_one_kind_are_one_entity_until_a_label_begins_anew() -> None:
    text = "A B C D E"
    labels = ["B-PER", "I-PER", "B-PER", "O", "LOC"]
    words = [Word(label, 0.5 + i / 10, 2 * i, 2 * i + 1) for i, label in enumerate(labels)]
    found = [(e.entity_group, e.word, round(e.score, 6)) for e in entities(text, words)]
    assert found == [("PER", "A B", 0.55), ("PER", "C", 0.7), ("LOC", "E", 0.9)]
