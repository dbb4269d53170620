"""Token ids and offsets, compared with the tokenizer of Hugging Face transformers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from app.engine.tokenizer import SECTION_CHARS, Tokenizer, title_limit

ODD_TEXTS = {
    "emoji": "héllo wörld 😀 foo",
    "joined emoji": "a 👩‍👩‍👧 family",
    "combining marks": "e\u0301te\u0301 n\u0303",
    "no spaces": "日本語テキスト 中文 한국어",
    "thai": "ภาษาไทย",
    "bidirectional marks": "abc \u202eשלום\u202c مرحبا",
    "controls": "a\0b\tc\r\nd \ufeff e\x0bf\x85g",
    "ligature and dotless": "ﬁne İstanbul ısı",
    "long word": "a" * 100_000,
    "blank": " \n\t ",
    "empty": "",
}


@pytest.fixture(scope="session")
def reference(packaged_folder: Path) -> PreTrainedTokenizerBase:
    loaded = AutoTokenizer.from_pretrained(packaged_folder, local_files_only=True)
    assert isinstance(loaded, PreTrainedTokenizerBase)
    return loaded


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_ids_and_offsets_are_those_of_transformers(
    text: str, tokenizer: Tokenizer, reference: PreTrainedTokenizerBase
) -> None:
    expected = reference(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True)
    tokens = tokenizer.tokenize(text)
    assert tokens.ids.tolist() == expected["input_ids"]
    offsets = list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True))
    assert offsets == [tuple(o) for o in expected["offset_mapping"]]


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS.keys())
def test_ids_alone_are_those_with_offsets(text: str, tokenizer: Tokenizer) -> None:
    assert tokenizer.token_ids(["x", text])[1].tolist() == tokenizer.tokenize(text).ids.tolist()
    assert tokenizer.count(text) == len(tokenizer.tokenize(text))


def test_offsets_count_code_points(tokenizer: Tokenizer) -> None:
    text = "😀 naïve 日本"
    tokens = tokenizer.tokenize(text)
    pieces = [text[start:end] for start, end in zip(tokens.starts, tokens.ends, strict=True)]
    assert pieces == ["😀", "naïve", "日", "本"]


def test_unknown_marks_what_the_vocabulary_lacks(tokenizer: Tokenizer) -> None:
    assert tokenizer.tokenize("see 😀 here").unknown.tolist() == [False, True, False]


def test_names_of_special_tokens_in_a_text_are_ordinary_text(tokenizer: Tokenizer) -> None:
    ids = set(tokenizer.tokenize("[SEP] [CLS] [MASK] [PAD]").ids.tolist())
    special = {0, 101, 102, 103}
    assert not ids & special


def test_lone_surrogate_is_passed_over_and_keeps_its_place(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokenize("\ud800abc \udfff day")
    assert list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True)) == [(1, 4), (7, 10)]


def test_special_tokens_are_known(tokenizer: Tokenizer) -> None:
    assert (tokenizer.prefix.tolist(), tokenizer.suffix.tolist()) == ([101], [102])
    assert tokenizer.n_special == 2


@pytest.mark.parametrize("border", [" ", "\n", " \u0301", "日"])
def test_text_of_many_sections_is_tokenised_as_a_whole(
    border: str, tokenizer: Tokenizer, reference: PreTrainedTokenizerBase
) -> None:
    text = border.join(["unaffable", "cafe\u0301", "x😀y"] * (SECTION_CHARS // 7))
    assert len(text) > 2 * SECTION_CHARS
    expected = reference(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True)
    tokens = tokenizer.tokenize(text)
    assert tokens.ids.tolist() == expected["input_ids"]
    offsets = list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True))
    assert offsets == [tuple(o) for o in expected["offset_mapping"]]
    assert tokenizer.token_ids([text])[0].tolist() == expected["input_ids"]


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(), max_size=200))
def test_offsets_are_ordered_and_inside_any_text(text: str, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.tokenize(text)
    starts, ends = tokens.starts.tolist(), tokens.ends.tolist()
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))
    assert starts == sorted(starts)
    assert ends == sorted(ends)


def test_concurrent_callers_get_what_single_ones_get(tokenizer: Tokenizer) -> None:
    texts = [f"text number {i} " + "naïve café 😀 " * i for i in range(64)]
    expected = [tokenizer.tokenize(text).ids.tolist() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert [t.ids.tolist() for t in pool.map(tokenizer.tokenize, texts)] == expected
            assert [
                ids[0].tolist() for ids in pool.map(tokenizer.token_ids, [[t] for t in texts])
            ] == expected


def test_title_takes_at_most_a_quarter_of_the_input() -> None:
    assert title_limit(256) == 64
