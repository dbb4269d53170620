"""Whole words out of the tokenizer's."""

from itertools import pairwise

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from app.engine.pieces import Ids
from app.engine.tokenizer import Tokenizer
from app.engine.whole_words import whole_words

BERT_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]")


def spans_of(text: str) -> Ids:
    """(n, 2), of words that end at every punctuation mark."""
    return np.array([match.span() for match in BERT_WORD.finditer(text)], np.int32).reshape(-1, 2)


def words_of(text: str) -> list[str]:
    spans = spans_of(text)
    numbers = whole_words(text, np.arange(len(spans), dtype=np.int32), spans[:, 0], spans[:, 1])
    places = [np.flatnonzero(numbers == n) for n in range(int(numbers.max(initial=-1)) + 1)]
    return [text[spans[of[0], 0] : spans[of[-1], 1]] for of in places]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("In Warsaw.", ["In", "Warsaw", "."]),
        ("The U.S. beat", ["The", "U.S.", "beat"]),
        ("the U.S.-led force", ["the", "U.S.-led", "force"]),
        ("the U.S.'s force", ["the", "U.S.", "'s", "force"]),
        ("J. R. R. Tolkien", ["J.", "R.", "R.", "Tolkien"]),
        ("AT&T, 1995-96", ["AT&T", ",", "1995-96"]),
        ("won 6-3, 2:1, 1,000 and 3.5%", ["won", "6-3", ",", "2:1", ",", "1,000", "and", "3.5", "%"]),
        ("Paris,London", ["Paris", ",", "London"]),
        ("Merkel's O'Brien", ["Merkel", "'s", "O'Brien"]),
        ("‘Merkel’s’ 's", ["‘", "Merkel", "’s", "’", "'", "s"]),
        ("St. Louis and Mt. Etna", ["St.", "Louis", "and", "Mt.", "Etna"]),
        ("Norwest Corp. said", ["Norwest", "Corp.", "said"]),
        ("Norwest Corp., of", ["Norwest", "Corp.", ",", "of"]),
        ("left Norwest Corp. He", ["left", "Norwest", "Corp", ".", "He"]),
        ("in 1996. and", ["in", "1996", ".", "and"]),
        ("a - b -c d-", ["a", "-", "b", "-", "c", "d", "-"]),
        ("first.last@example.org", ["first.last@example.org"]),
        ("(Reuters)", ["(", "Reuters", ")"]),
        ("日本-東京", ["日本-東京"]),
        ("...", [".", ".", "."]),
        ("U.", ["U."]),
        ("x'", ["x", "'"]),
        ("", []),
    ],
)
def test_words_are_those_that_people_write(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text(alphabet="aB9.,-'’& s\n😀é日", max_size=40))
def test_whole_words_follow_each_other_and_are_made_of_whole_ones(text: str) -> None:
    spans = spans_of(text)
    inner = np.repeat(np.arange(len(spans), dtype=np.int32), 2)  # two tokens of each word
    numbers = whole_words(text, inner, np.repeat(spans[:, 0], 2), np.repeat(spans[:, 1], 2))
    assert set(np.diff(numbers, prepend=-1).tolist()) <= {0, 1}
    assert (numbers[::2] == numbers[1::2]).all()
    for of in (np.flatnonzero(numbers == n) // 2 for n in range(len(spans))):
        assert all(spans[a, 1] == spans[b, 0] for a, b in pairwise(of.tolist()) if a != b)


def test_pieces_of_a_real_tokenizer_are_taken_together(tokenizer: Tokenizer) -> None:
    text = "Mischaracterised U.S.-led neurophysiologists of AT&T"
    pieces = tokenizer.pieces(text).ordinary()
    numbers = whole_words(text, pieces.words, pieces.starts, pieces.ends)
    begins = pieces.starts[np.flatnonzero(np.diff(numbers, prepend=-1))]
    assert [text[start:].split(maxsplit=1)[0] for start in begins] == text.split()
