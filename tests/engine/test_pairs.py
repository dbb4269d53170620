"""Pairs of question and passage, and windows over long passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from app.engine.pairs import PairEncoder, TitledText, windows
from app.engine.tokenizer import Tokenizer
from app.errors import BlankText

MAX_TOKENS = 96


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> PairEncoder:
    return PairEncoder(tokenizer, max_tokens=MAX_TOKENS)


def test_a_pair_is_what_transformers_makes_of_it(encoder: PairEncoder, packaged_folder: object) -> None:
    reference = AutoTokenizer.from_pretrained(packaged_folder, local_files_only=True)
    question, text = "Who left Edison's company?", "Nikola Tesla did, in 1885. 😀 naïve"
    (one,) = encoder.inputs(encoder.question(question), TitledText(text)).inputs
    expected = reference(question, text, return_token_type_ids=True)
    assert one.sequence.ids.tolist() == expected["input_ids"]
    assert one.sequence.segments is not None
    assert one.sequence.segments.tolist() == expected["token_type_ids"]


def test_a_title_stands_before_the_text_in_the_second_segment(
    encoder: PairEncoder, tokenizer: Tokenizer
) -> None:
    pair = encoder.inputs(encoder.question("who"), TitledText("He was born.", "Nikola Tesla"))
    (one,) = pair.inputs
    words = [
        101,
        *tokenizer.token_ids(["who"])[0],
        102,
        *tokenizer.token_ids(["Nikola Tesla He was born."])[0],
    ]
    assert one.sequence.ids.tolist() == [*words, 102]
    assert one.sequence.segments is not None
    assert one.sequence.segments.tolist() == [0, 0, 0] + [1] * (len(words) - 2)
    assert one.sequence.ids[one.text_start] == tokenizer.token_ids(["he"])[0][0]


def test_a_long_question_is_cut_and_tells_it_and_leaves_room_for_the_passage(encoder: PairEncoder) -> None:
    question = encoder.question("word " * 200)
    assert (question.n_tokens, len(question.ids), question.is_truncated) == (200, 24, True)
    assert not encoder.question("word " * 24).is_truncated
    pair = encoder.inputs(question, TitledText("passage " * 500, "title " * 500))
    assert all(len(one.sequence) == MAX_TOKENS for one in pair.inputs)
    assert pair.inputs[0].text_start == 1 + 24 + 1 + 24


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_blank_question_is_refused(encoder: PairEncoder, blank: str) -> None:
    with pytest.raises(BlankText, match="the question is blank"):
        encoder.question(blank)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b"])
def test_a_text_without_tokens_is_one_window_of_nothing(encoder: PairEncoder, text: str) -> None:
    (one,) = encoder.inputs(encoder.question("who"), TitledText(text)).inputs
    assert one.window.end == 0
    assert len(one.sequence) == 4


def test_windows_beyond_the_most_are_left_out_and_it_is_told(encoder: PairEncoder) -> None:
    passage = TitledText("word " * 1000)
    question = encoder.question("who")
    assert not encoder.inputs(question, passage).is_truncated
    cut = encoder.inputs(question, passage, max_windows=2)
    assert cut.is_truncated
    assert len(cut.inputs) == 2


@given(n_tokens=st.integers(0, 2000), room=st.integers(2, 400))
def test_every_token_is_owned_by_one_window_that_shows_it(n_tokens: int, room: int) -> None:
    cut = list(windows(n_tokens, room))
    owned = [token for window in cut for token in range(window.own_first, window.own_end)]
    assert owned == list(range(n_tokens))
    for window in cut:
        assert window.first <= window.own_first <= window.own_end <= window.end
        assert window.end - window.first <= room
        assert len(cut) == 1 or window.end - window.first == room


@given(n_tokens=st.integers(300, 2000))
def test_a_span_that_begins_in_an_owned_place_is_seen_to_its_end(n_tokens: int) -> None:
    for window in windows(n_tokens, 290):
        assert window.end == n_tokens or window.end - window.own_end >= 60
