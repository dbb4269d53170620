"""What counts as a word: the one function that both the index and the queries are made of.

Owned here rather than by the engine, because a query analysed differently from the index finds nothing.
"""

import functools
import operator
from collections import Counter
from collections.abc import Iterator

import regex
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from app.storage.lexical.folding import fold
from app.storage.lexical.stopwords import STOP_WORDS

ANALYSIS_VERSION = 1
"""Raised whenever the same text would give other terms: indexes of another version are built anew."""

TITLE_WEIGHT = 2
"""How often a title's words are counted. See docs/decisions/0008-lexical-analysis.md."""

MAX_TERM_CHARS = 64
"""Longer words are known by their beginning, in the index and in queries alike."""

UNSPACED = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}"
    r"\p{Khmer}\p{Myanmar}\p{Tibetan}ー々〆〇]"
)
"""Scripts written without spaces between words, and Korean, which glues particles to them."""

UNSPACED_CHARACTER = regex.compile(UNSPACED)

LETTER = rf"[[\p{{L}}\p{{N}}\p{{M}}]--{UNSPACED}]"

COMPOUND = regex.compile(
    rf"(?P<run>{UNSPACED}+)"
    rf"|(?P<whole>(?:(?<![\p{{L}}\p{{N}}.])\.(?=\p{{L}}{{2}}))?"
    rf"{LETTER}+(?:(?:_+|\+\+|[-.@'&+]){LETTER}+)*"
    rf"(?:(?:\+\+|\#)(?!{LETTER}))?)",
    flags=regex.VERSION1,
)
"""A run without spaces, or words joined into one: `foo_bar`, `.NET`, `C#`, `a@b.org`."""

WORD = regex.compile(rf"{LETTER}+", flags=regex.VERSION1)
CLUSTER = regex.compile(r"\X")
NUMBER = regex.compile(r"\d+(?:\.\d+)?")
THOUSANDS = regex.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
ENCLITIC = regex.compile(r"(?<=\p{L})(?:'(?:s|ll|re|ve|d|m)|n't)(?![\p{L}\p{N}'])", flags=regex.IGNORECASE)
"""What English hangs on a word: the possessive, `is`, `will`, `have`, `not`."""

CAMEL = regex.compile(r"(?<=\p{Ll}{2})(?=\p{Lu}\p{Ll})")
LETTER_HYPHEN = regex.compile(r"(?<=\p{L})[-']|[-'](?=\p{L})")

N_CACHED_CHUNKS = 200_000
"""Words with the punctuation around them; a cached one costs a fortieth. About 40 MB when full."""

MAX_CACHED_CHARS = 24
"""Of a chunk. A longer one, and one in a script without spaces, seldom comes again, and may have hundreds of
terms of 80 bytes each."""


def passage_terms(title: str | None, text: str) -> list[str]:
    """The words of a passage and, counted more, of its title.

    One bag of words, weighted before the saturation of BM25: Robertson, Zaragoza and Taylor 2004.
    """
    return document_terms(title or "") * TITLE_WEIGHT + document_terms(text)


def document_terms(text: str) -> list[str]:
    """Terms of a text to be indexed, repeated as often as they occur.

    >>> document_terms("Cafés: see foo_bar and 東京都")
    ['cafe', 'see', 'foo_bar', 'foo', 'bar', 'and', '東', '京', '都', '東京', '京都']
    """
    terms: list[str] = []
    for chunk in text.split():
        terms += _cached_document_chunk(chunk) if _is_worth_caching(chunk) else _document_chunk(chunk)
    return terms


def query_terms(text: str) -> Counter[str]:
    """Terms that a query asks for, with how often it names them. Empty for a text without a word.

    Stop words are left out unless there is nothing else. Nothing in the text is an operator.

    >>> query_terms("What is C++?")
    Counter({'c++': 1, 'c': 1})
    >>> query_terms("To be or not to be")
    Counter({'to': 2, 'be': 2, 'or': 1, 'not': 1})
    """
    words = [word for chunk in text.split() for word in _words(chunk, with_single=False)]
    return Counter(_stem(word) for word in words if word not in STOP_WORDS) or Counter(map(_stem, words))


def _document_chunk(chunk: str) -> tuple[str, ...]:
    return tuple(map(_stem, _words(chunk, with_single=True)))


_cached_document_chunk = functools.lru_cache(N_CACHED_CHUNKS)(_document_chunk)


def _is_worth_caching(chunk: str) -> bool:
    return len(chunk) <= MAX_CACHED_CHARS and (chunk.isascii() or UNSPACED_CHARACTER.search(chunk) is None)


def _words(chunk: str, *, with_single: bool) -> Iterator[str]:
    """The unstemmed terms of a text without white space."""
    if chunk.isascii() and chunk.isalpha() and chunk.islower():  # by far the most, and the same as below
        yield chunk[:MAX_TERM_CHARS]
        return
    chunk = ENCLITIC.sub("", THOUSANDS.sub(lambda m: m[0].replace(",", ""), fold(chunk)))
    for match in COMPOUND.finditer(chunk):
        run, compound = match.groups()
        yield from _run_words(run, with_single=with_single) if run else _compound_words(compound)


def _compound_words(compound: str) -> Iterator[str]:
    parts = WORD.findall(compound)
    if len(parts) > 1 or parts[0] != compound:
        yield LETTER_HYPHEN.sub("", compound).casefold()[:MAX_TERM_CHARS]
        if NUMBER.fullmatch(compound):
            return
    for part in parts:
        yield part.casefold()[:MAX_TERM_CHARS]
        humps = CAMEL.split(part)
        if len(humps) > 1:
            yield from (hump.casefold()[:MAX_TERM_CHARS] for hump in humps)


def _run_words(run: str, *, with_single: bool) -> Iterator[str]:
    """Pairs of neighbouring characters, and for the index each character too, so that one alone is found."""
    characters = CLUSTER.findall(run.casefold())
    if with_single or len(characters) == 1:
        yield from characters
    yield from map(operator.add, characters, characters[1:])


_stemmer = TextAnalyzerBuilder(Tokenizer.raw()).filter(Filter.stemmer("english")).build()


def _stem(word: str) -> str:
    """Snowball's English stemmer, for whatever is written in its letters."""
    return _stemmer.analyze(word)[0] if word.isascii() and word.isalpha() else word
