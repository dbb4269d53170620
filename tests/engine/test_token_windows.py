"""Windows over the tokens of a text: every token owned once, words whole, with context around."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.engine.token_windows import OVERLAP_DIVISOR, token_windows

lengths_of_words = st.lists(st.integers(1, 5), min_size=1, max_size=60)


def words_of(lengths: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(8, 24))
def test_every_token_is_owned_by_one_window_that_reads_it(lengths: list[int], room: int) -> None:
    words = words_of(lengths)
    windows = token_windows(words, room=room)
    owned = [place for window in windows for place in range(window.owned_start, window.owned_end)]
    assert owned == list(range(len(words)))
    for window in windows:
        assert window.start <= window.owned_start <= window.owned_end <= window.end
        assert window.end - window.start <= room


@given(lengths_of_words, st.integers(24, 40))
def test_words_shorter_than_the_overlap_have_one_owner(lengths: list[int], room: int) -> None:
    words = words_of(lengths)
    for window in token_windows(words, room=room)[1:]:
        assert words[window.owned_start] != words[window.owned_start - 1]


@given(lengths_of_words, st.integers(24, 40))
def test_an_owned_token_has_neighbours_on_both_sides(lengths: list[int], room: int) -> None:
    """At an inner border: at least half of the overlap, less a word of up to five tokens on either side."""
    words = words_of(lengths)
    least = room // OVERLAP_DIVISOR // 2 - 5
    windows = token_windows(words, room=room)
    for before, after in pairwise(windows):
        assert before.end - before.owned_end >= least
        assert after.owned_start - after.start >= least


def test_a_short_text_is_one_window() -> None:
    (window,) = token_windows(words_of([2, 3]), room=5)
    assert (window.start, window.end, window.owned_start, window.owned_end) == (0, 5, 0, 5)
