"""Spans out of logits: the best ones, in whole characters, each character's window being its owner."""

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.graphemes import widened
from app.engine.pairs import PairEncoder, PairInputs, TitledText
from app.engine.runner import Outputs
from app.engine.spans import best_spans, span_scores
from app.engine.tokenizer import Tokenizer

QUESTION = "which"


@pytest.fixture(scope="module")
def encoder(tokenizer: Tokenizer) -> PairEncoder:
    return PairEncoder(tokenizer, max_tokens=40)


def logits(pair: PairInputs, wanted: dict[int, tuple[float, float]], *, null: float = 0.0) -> list[Outputs]:
    """Start and end logits of each window: 0 or, for tokens of the text, what is wanted of them."""
    outputs: list[Outputs] = []
    for one in pair.inputs:
        start, end = (np.full(len(one.sequence), -5, dtype=np.float32) for _ in range(2))
        start[0] = end[0] = null / 2
        for token, (of_start, of_end) in wanted.items():
            if one.window.first <= token < one.window.end:
                place = one.text_start + token - one.window.first
                start[place], end[place] = of_start, of_end
        outputs.append({"start": start, "end": end})
    return outputs


def answers(encoder: PairEncoder, text: str, wanted: dict[int, tuple[float, float]], n: int = 3) -> list[str]:
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    return [text[s.start : s.end] for s in best_spans(text, pair, logits(pair, wanted), n_spans=n)]


def test_the_span_of_the_greatest_sum_wins_and_its_margin_is_over_no_answer(encoder: PairEncoder) -> None:
    text = "red green blue"
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    found = best_spans(text, pair, logits(pair, {1: (4, 1), 2: (0, 3)}, null=2), n_spans=1)
    assert [(text[s.start : s.end], s.logit, s.null_logit, s.margin) for s in found] == [
        ("green blue", 7, 2, 5)
    ]


def test_probability_is_the_product_of_two_softmaxes_with_no_answer_among_both(encoder: PairEncoder) -> None:
    """Starts 0 (none), 1, -5; ends 0, 2, -5."""
    text = "red green"
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    (best,) = best_spans(text, pair, logits(pair, {0: (1, 2)}), n_spans=1)
    expected = np.exp(1) / np.exp([0, 1, -5]).sum() * np.exp(2) / np.exp([0, 2, -5]).sum()
    assert best.probability == pytest.approx(expected)


def test_the_best_of_several_spans_is_the_only_one(encoder: PairEncoder) -> None:
    """Also where starts and ends tie."""
    text = "Was it the cafe\u0301 or the river bridge of old Warsaw that the mayor meant? " * 2
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    rng = np.random.default_rng(7)
    for _ in range(20):
        wanted = {i: tuple(rng.integers(0, 3, 2).tolist()) for i in range(len(pair.tokens))}
        outputs = logits(pair, wanted)
        (only,) = best_spans(text, pair, outputs, n_spans=1)
        assert best_spans(text, pair, outputs, n_spans=3)[0] == only


def test_an_end_never_comes_before_its_start(encoder: PairEncoder) -> None:
    assert answers(encoder, "red green blue", {2: (9, 0), 0: (0, 9)}, n=1) == ["red"]


def test_several_answers_do_not_overlap(encoder: PairEncoder) -> None:
    assert answers(encoder, "red green blue", {0: (4, 4), 2: (3, 3)}, n=2) == ["red", "blue"]


def test_a_span_is_at_most_so_many_tokens_long(encoder: PairEncoder) -> None:
    scores = span_scores(np.zeros(50), np.zeros(50), own=slice(0, 50), max_tokens=30)
    assert scores.shape == (30, 50)
    assert np.isneginf(scores[29, 21:]).all()
    assert np.isfinite(scores[29, :21]).all()


def test_pieces_of_a_word_are_answered_as_the_word(encoder: PairEncoder, tokenizer: Tokenizer) -> None:
    text = "the electroencephalography machine"
    assert len(tokenizer.tokenize(text)) > 4
    assert answers(encoder, text, {2: (5, 5)}, n=1) == ["electroencephalography"]


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("un cafe\u0301\u0323 noir", 1, "cafe\u0301\u0323"),
        ("a 👩‍👩‍👧 family", 1, "👩‍👩‍👧"),
        ("flag 🇵🇱 pole", 1, "🇵🇱"),
        ("\u1112\u1161\u11ab word", 0, "\u1112\u1161\u11ab"),
    ],
)
def test_an_answer_holds_whole_characters(encoder: PairEncoder, text: str, token: int, expected: str) -> None:
    assert answers(encoder, text, {token: (5, 5)}, n=1) == [expected]


def test_a_run_of_a_script_without_spaces_is_not_one_word(encoder: PairEncoder) -> None:
    text = "テキスト" * 20
    assert len(answers(encoder, text, {3: (5, 5)}, n=1)[0]) < len(text)


def test_a_span_in_an_overlap_is_found_once(encoder: PairEncoder) -> None:
    text = " ".join(f"w{i}" for i in range(60))
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    n_tokens = len(pair.tokens)
    assert len(pair.inputs) > 2
    for token in range(0, n_tokens, 3):
        found = best_spans(text, pair, logits(pair, {token: (9, 9)}), n_spans=5)
        place = pair.tokens.starts[token]
        assert [s.start <= place < s.end for s in found] == [True] + [False] * (len(found) - 1)


def test_no_text_has_no_spans(encoder: PairEncoder) -> None:
    assert answers(encoder, " \n", {}) == []


@settings(deadline=None, max_examples=60)
@given(text=st.text(min_size=1, max_size=80), seed=st.integers(0, 99))
def test_a_span_is_a_slice_of_whole_graphemes(tokenizer: Tokenizer, text: str, seed: int) -> None:
    encoder = PairEncoder(tokenizer, max_tokens=40)
    pair = encoder.inputs(encoder.question(QUESTION), TitledText(text))
    choose = np.random.default_rng(seed)
    outputs: list[Outputs] = [
        {name: choose.normal(size=len(one.sequence)).astype(np.float32) for name in ("start", "end")}
        for one in pair.inputs
    ]
    borders = {0, *(found.end() for found in regex.finditer(r"\X", text))}
    for span in best_spans(text, pair, outputs, n_spans=3):
        assert 0 <= span.start < span.end <= len(text)
        assert {span.start, span.end} <= borders


@given(st.text(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_widening_keeps_what_was_in_the_slice(text: str, start: int, length: int) -> None:
    start = min(start, len(text))
    end = min(len(text), start + length)
    first, last = widened(text, start, end)
    assert first <= start
    assert last >= end
