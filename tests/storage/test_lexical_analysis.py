import doctest
import unicodedata
from collections import Counter
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.lexical import analysis, bm25, folding
from app.storage.lexical.analysis import (
    MAX_TERM_CHARS,
    TITLE_WEIGHT,
    document_terms,
    passage_terms,
    query_terms,
)


def finds(query: str, text: str) -> bool:
    """Whether a document of this text is found by the query."""
    return not query_terms(query).keys().isdisjoint(document_terms(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("leukemia", "Leukemias, explained."),
        ("running", "She RUNS."),
        ("cafe", "Café"),
        ("café", "CAFE"),
        ("cafe\u0301", "café"),
        ("naïve", "naive"),
        ("Ærø", "aeroe"),
        ("STRASSE", "Straße"),
        ("lodz", "Łódź"),
        ("ISPARTA", "ısparta"),
        ("istanbul", "İSTANBUL"),
        ("κοσμος", "ΚΌΣΜΟΣ"),
        ("ёлка", "Елка"),
        ("ABC", "ＡＢＣ"),
        ("office", "oﬃce"),
        ("cooperate", "co\u00adoperate"),
        ("محمد", "مُحَمَّد"),
        ("שלום", "שָׁלוֹם"),
        ("می‌خواهم", "میخواهم"),
        ("हिन्दी", "मुझे हिन्दी आती है"),
    ],
)
def test_a_word_is_found_however_it_is_spelt(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("किताब", "कतब"), ("が", "か"), ("หมา", "ห้อง"), ("311", "3.11"), ("c", "cat"), ("3.11", "3.12")],
)
def test_different_words_stay_different(query: str, text: str) -> None:
    assert not finds(query, text)


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("foo_bar", ["foo", "bar"]),
        ("__init__", ["init"]),
        ("CVE-2024-1234", ["cve", "2024", "1234"]),
        ("jane.doe@example.org", ["jane", "doe", "example", "org"]),
        ("3.11.7", ["3", "11", "7"]),
        ("getUserName", ["get", "user", "name"]),
        ("AT&T", ["at", "t"]),
        ("C++17", ["c", "17"]),
        ("covid-19", ["covid", "19"]),
        ("l'homme", ["homme"]),
        ("https://example.org/a/b?key=value", ["example.org", "key", "value"]),
    ],
)
def test_an_identifier_is_found_whole_and_in_parts(identifier: str, parts: list[str]) -> None:
    text = f"See ({identifier}), please."
    assert all(finds(query, text) for query in [identifier, identifier.upper(), identifier.lower(), *parts])


@pytest.mark.parametrize(
    ("identifier", "others"),
    [
        ("foo_bar", ["foo", "bar"]),
        ("CVE-2024-1234", ["CVE", "2024", "1234"]),
        ("c++", ["c"]),
        ("C#", ["c", "C++"]),
        (".NET", ["net"]),
        ("3.11.7", ["3", "11", "7"]),
        ("a.b@c.de", ["a", "b", "c", "de"]),
    ],
)
def test_a_whole_identifier_has_a_term_of_its_own(identifier: str, others: list[str]) -> None:
    whole = query_terms(identifier).keys() - {term for other in others for term in document_terms(other)}
    assert len(whole) == 1


@pytest.mark.parametrize(
    ("written", "also"),
    [
        ("wi-fi", "wifi"),
        ("COVID19", "covid-19"),
        ("1,000,000", "1000000"),
        ("women’s", "women"),
        ("O'Reilly", "OReilly"),
    ],
)
def test_spellings_with_and_without_a_joining_character_find_each_other(written: str, also: str) -> None:
    assert finds(written, also)
    assert finds(also, written)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("東京", "私は東京都に住んでいます"),
        ("北京", "我在北京大学学习"),
        ("水", "水道の水"),
        ("データ", "ビッグデータ解析"),
        ("น้ำแข็ง", "ฉันชอบน้ำแข็งใส"),
        ("한국어", "한국어를 공부합니다"),
        ("ພາສາ", "ພາສາລາວ"),
        ("Python", "用Python编程"),
    ],
)
def test_a_word_is_found_in_a_script_without_spaces(word: str, text: str) -> None:
    assert finds(word, text)


def test_decomposed_hangul_and_kana_are_found() -> None:
    assert finds(unicodedata.normalize("NFD", "한국어"), "한국어를")
    assert finds("がく", unicodedata.normalize("NFD", "がく"))


@pytest.mark.parametrize(
    "query", ["c++", "AND", '"unbalanced', "title:x", "a:b", "-word", "(NOT", "word~2^3"]
)
def test_nothing_in_a_query_is_an_operator(query: str) -> None:
    assert finds(query, f"something {query} something")


@pytest.mark.parametrize("query", ["", "   ", "*", "?!...", '"', "👍🏽 🎉", "\u200d\ufeff", "\x00", "\ud800"])
def test_a_query_without_a_word_has_no_terms(query: str) -> None:
    assert query_terms(query) == Counter()


def test_stop_words_are_left_out_of_a_query_unless_there_is_nothing_else() -> None:
    assert query_terms("What is the capital of France?").keys() == {"capit", "franc"}
    assert query_terms("To be or not to be") == Counter(to=2, be=2, **{"or": 1, "not": 1})
    assert finds("to be or not to be", "To be, or not to be, that is the question.")


def test_a_stop_word_is_recognised_before_stemming() -> None:
    assert query_terms("who does John Doe know").keys() == {"john", "doe", "know"}


def test_a_repeated_word_counts_as_often_as_it_is_named() -> None:
    assert query_terms("cat cats dog") == Counter(cat=2, dog=1)


def test_title_words_count_more() -> None:
    assert Counter(passage_terms("Cats", "A cat"))["cat"] == TITLE_WEIGHT + 1
    assert passage_terms(None, "A cat") == ["a", "cat"]


def test_a_very_long_word_is_known_by_its_beginning() -> None:
    word = "a" * 100_000
    assert [len(term) for term in document_terms(word)] == [MAX_TERM_CHARS]
    assert finds(word, f"before {word} after")


@given(st.text())
def test_every_text_is_analysed(text: str) -> None:
    terms = document_terms(text)
    assert all(term and not term.isspace() and term == "".join(term.split()) for term in terms)
    assert all(len(term) <= MAX_TERM_CHARS or not term.isascii() for term in terms)


@given(st.text())
def test_a_document_is_found_by_each_of_its_own_words(text: str) -> None:
    terms = set(document_terms(text))
    for word in text.split():
        wanted = query_terms(word)
        assert wanted.keys() <= terms


@given(st.text(alphabet="abcXYZ", max_size=12), st.sampled_from(["", ".", ",", "!", ")", "”"]))
def test_punctuation_around_a_word_changes_nothing(word: str, mark: str) -> None:
    assert document_terms(word + mark) == document_terms(word)


@pytest.mark.parametrize("module", [analysis, bm25, folding])
def test_examples_in_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("made", ["東京都{}", "word-{}" * 20, "x" * 30 + "{}"])
def test_what_seldom_comes_again_is_not_kept(made: str) -> None:
    """A text without spaces is one chunk of hundreds of terms: 200,000 of them kept would fill the memory."""
    before = analysis._cached_document_chunk.cache_info().currsize
    for i in range(100):
        document_terms(made.replace("{}", chr(0x4E00 + i) if "東" in made else str(i)))
    assert analysis._cached_document_chunk.cache_info().currsize == before


def test_a_kept_chunk_has_the_same_terms_as_one_that_is_not() -> None:
    long_word, short_word = "foo_bar" + "z" * 30, "foo_bar"
    assert document_terms(f"{short_word} {long_word}") == [
        *analysis._document_chunk(short_word),
        *analysis._document_chunk(long_word),
    ]
