"""What a model reads of a text or pair, compared with the tokenizer of transformers."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from app.engine.offsets import utf16_offsets
from app.engine.tokenizer import Tokenizer

TEXT, PAIR = "Élan vital 😀 don't e\u0301te\u0301", "electroencephalography 日本"


@pytest.fixture(scope="module")
def reference(packaged_folder: Path) -> PreTrainedTokenizerBase:
    loaded = AutoTokenizer.from_pretrained(packaged_folder, local_files_only=True)
    assert isinstance(loaded, PreTrainedTokenizerBase)
    return loaded


@pytest.mark.parametrize("texts", [(TEXT,), (TEXT, PAIR), ("",), (PAIR, " ")])
def test_pieces_are_those_that_transformers_gives_a_model(
    texts: tuple[str, ...], tokenizer: Tokenizer, reference: PreTrainedTokenizerBase
) -> None:
    expected = reference(
        *texts, truncation=False, return_offsets_mapping=True, return_special_tokens_mask=True
    )
    pieces = tokenizer.pieces(*texts)
    assert pieces.ids.tolist() == expected["input_ids"]
    assert pieces.segments.tolist() == expected["token_type_ids"]
    assert pieces.special.tolist() == [bool(mark) for mark in expected["special_tokens_mask"]]
    assert list(zip(pieces.starts, pieces.ends, strict=True)) == expected["offset_mapping"]
    assert list(pieces.tokens) == reference.convert_ids_to_tokens(expected["input_ids"])
    assert [None if w < 0 else w for w in pieces.words] == expected.word_ids()
    assert [None if t < 0 else t for t in pieces.text] == expected.sequence_ids()


def test_offsets_are_of_the_piece_s_own_text(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(TEXT, PAIR)
    second = pieces.text == 1
    spans = zip(pieces.starts[second], pieces.ends[second], strict=True)
    assert "".join(PAIR[start:end] for start, end in spans) == PAIR.replace(" ", "")


def test_unknown_share_counts_tokens_that_are_not_special(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces("see 😀", "so 😀")
    assert pieces.unknown_share == 0.5
    assert tokenizer.pieces("").unknown_share == 0


def test_pieces_per_word_counts_words_of_both_texts(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces("el", "el").pieces_per_word == 1
    assert tokenizer.pieces("élan", "vital").pieces_per_word == 1.5  # el ##an, vital
    assert tokenizer.pieces("").pieces_per_word == 0


def test_cutting_a_pair_takes_the_end_of_the_second_text_first(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces("one two three", "four five six")
    assert list(pieces.cut(7).tokens) == ["[CLS]", "one", "two", "three", "[SEP]", "four", "[SEP]"]
    assert list(pieces.cut(5).tokens) == ["[CLS]", "one", "two", "[SEP]", "[SEP]"]
    assert list(pieces.cut(9).tokens) == list(pieces.tokens)


def test_an_uncased_model_reads_lower_case_without_accents(tokenizer: Tokenizer) -> None:
    assert tokenizer.normalized("Élan VITAL") == "elan vital"


def test_names_and_ids_of_tokens_are_inverse(tokenizer: Tokenizer) -> None:
    for token in ("[MASK]", "the", "##ing"):
        token_id = tokenizer.id_of(token)
        assert token_id is not None
        assert tokenizer.name(token_id) == token
    assert tokenizer.id_of("no such token") is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_utf16_offsets_count_what_javascript_counts(text: str) -> None:
    places = range(len(text) + 1)
    expected = [len(text[:place].encode("utf-16-le")) // 2 for place in places]
    assert utf16_offsets(text, list(places)).tolist() == expected
    assert utf16_offsets(text, np.array([], dtype=np.int32)).tolist() == []
