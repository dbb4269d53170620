import pytest

from indexer.readability import readability_warnings
from tests.indexer.texts import human_rights, packaged_vocabulary

TOKENIZER = packaged_vocabulary()


def warnings_for(text: str) -> tuple[str, ...]:
    return readability_warnings(TOKENIZER.tokenize(text), text)


@pytest.mark.parametrize(
    "language", ["eng", "fra", "deu_1901", "spa", "ita", "nld", "swe", "fin", "pol", "tur", "vie", "cym"]
)
def test_no_warning_for_languages_in_latin_letters(language: str) -> None:
    assert warnings_for(human_rights(language)) == ()


@pytest.mark.parametrize("language", ["jpn", "cmn_hans", "cmn_hant", "tha", "amh", "kat", "hye", "tam"])
def test_warning_where_words_are_unknown(language: str) -> None:
    [warning] = warnings_for(human_rights(language))
    assert "has no token for" in warning


@pytest.mark.parametrize("language", ["hin", "rus", "ell_monotonic", "arb", "heb", "kor", "ben"])
def test_warning_where_words_are_spelled_letter_by_letter(language: str) -> None:
    [warning] = warnings_for(human_rights(language))
    assert "spells this text in pieces of" in warning


def test_warning_names_the_share_of_unknown_tokens() -> None:
    text = "猫が窓から飛び出し、隣の庭で鳥を追い掛けた。"
    share = TOKENIZER.tokenize(text).unknown.mean()
    assert f"no token for {share:.0%} of this text" in warnings_for(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thanks 🎉 🎉",
        "x" * 100_000,
        "3.14159 2.71828 " * 50,
        "The word 東京 means eastern capital, and many of us have been there in the last years, too.",
    ],
)
def test_no_warning_for_a_few_odd_tokens(text: str) -> None:
    assert warnings_for(text) == ()
