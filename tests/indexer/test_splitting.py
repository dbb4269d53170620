from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import Document, Passage, SplitterSettings
from indexer.borders import SENTENCE, find_borders
from indexer.splitting import split
from tests.indexer.texts import human_rights, packaged_vocabulary

TOKENIZER = packaged_vocabulary()
ENCODER_LIMIT = 256

ENGLISH = [
    "The",
    "cat",
    "sat.",
    "3.14",
    "Dr.",
    "Smith!",
    "(said)",
    "“why?”",
    "antidisestablishmentarianism",
    "...",
]
OTHER = [
    "東京は夜。",
    "である、",
    "。。",
    "ภาษาไทย",
    "นี้",
    "नमस्ते",
    "e\u0301e\u0301",
    "각",
    "\u1100\u1161\u11a8",
]
ODD = ["👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "👍🏽", "\ufffd", "\ue000", "\u200b", "x\0y", "[SEP]"]
WORDS = st.sampled_from([*ENGLISH, *OTHER, *ODD])
GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\n\n", "\t", "\u3000", "\u2028", " \n \n", "\x0c", "   "])
TEXTS = st.lists(st.tuples(WORDS, GAPS), max_size=120).map(lambda parts: "".join(w + g for w, g in parts))
LIMITS = st.integers(16, 64)
OVERLAPS = st.integers(0, 64)


def passages_of(
    text: str,
    *,
    max_tokens: int = ENCODER_LIMIT,
    overlap_tokens: int = 0,
    title: str | None = None,
    page_starts: tuple[int, ...] = (),
) -> list[Passage]:
    return split(
        Document("d", text, title=title, page_starts=page_starts),
        TOKENIZER.tokenize(text),
        tokenizer=TOKENIZER,
        settings=SplitterSettings(max_tokens=max_tokens, overlap_tokens=overlap_tokens),
        max_tokens=ENCODER_LIMIT,
    )


def quotes_of(
    text: str, *, max_tokens: int = ENCODER_LIMIT, overlap_tokens: int = 0, title: str | None = None
) -> list[str]:
    passages = passages_of(text, max_tokens=max_tokens, overlap_tokens=overlap_tokens, title=title)
    return [text[p.start : p.end] for p in passages]


def sentence(n_words: int, start: str = "Alpha") -> str:
    """A sentence of n_words + 1 tokens."""
    return " ".join([start, *["word"] * (n_words - 1)]) + "."


@given(TEXTS, LIMITS, OVERLAPS)
@settings(max_examples=300, deadline=None)
def test_every_character_but_white_space_lies_in_a_passage(text: str, limit: int, overlap: int) -> None:
    covered = set[int]()
    for passage in passages_of(text, max_tokens=limit, overlap_tokens=overlap):
        covered.update(range(passage.start, passage.end))
    assert [c for i, c in enumerate(text) if i not in covered and not c.isspace()] == []


@given(TEXTS, LIMITS, OVERLAPS)
@settings(max_examples=200, deadline=None)
def test_starts_and_ends_ascend(text: str, limit: int, overlap: int) -> None:
    for one, two in pairwise(passages_of(text, max_tokens=limit, overlap_tokens=overlap)):
        assert one.start < two.start
        assert one.end < two.end


@given(TEXTS, LIMITS, OVERLAPS, st.sampled_from([None, "A title", "a very long title " * 30]))
@settings(max_examples=300, deadline=None)
def test_tokens_counted_on_the_slice_itself_are_within_the_limit(
    text: str, limit: int, overlap: int, title: str | None
) -> None:
    n_title = TOKENIZER.count(title) if title else 0
    for passage in passages_of(text, max_tokens=limit, overlap_tokens=overlap, title=title):
        n_text = TOKENIZER.count(text[passage.start : passage.end])
        assert n_text + min(n_title, limit // 4) + 2 <= limit  # [CLS] and [SEP]
        assert passage.n_tokens == n_text + min(n_title, ENCODER_LIMIT // 4) + 2
        assert passage.n_tokens <= ENCODER_LIMIT


@given(TEXTS, LIMITS, OVERLAPS)
@settings(max_examples=200, deadline=None)
def test_overlap_is_within_its_limit(text: str, limit: int, overlap: int) -> None:
    starts = TOKENIZER.tokenize(text).starts
    for one, two in pairwise(passages_of(text, max_tokens=limit, overlap_tokens=overlap)):
        assert int(((starts >= two.start) & (starts < one.end)).sum()) <= overlap


@given(TEXTS, LIMITS, OVERLAPS)
@settings(max_examples=200, deadline=None)
def test_ends_of_passages_are_no_white_space(text: str, limit: int, overlap: int) -> None:
    for passage in passages_of(text, max_tokens=limit, overlap_tokens=overlap):
        quote = text[passage.start : passage.end]
        assert quote
        assert quote == quote.strip()


@given(TEXTS, LIMITS, OVERLAPS)
@settings(max_examples=200, deadline=None)
def test_no_passage_begins_or_ends_inside_a_grapheme_cluster(text: str, limit: int, overlap: int) -> None:
    borders = {0} | {m.end() for m in regex.finditer(r"\X", text)}
    for passage in passages_of(text, max_tokens=limit, overlap_tokens=overlap):
        assert {passage.start, passage.end} <= borders


@given(TEXTS, LIMITS)
@settings(max_examples=50, deadline=None)
def test_same_input_gives_same_passages(text: str, limit: int) -> None:
    assert passages_of(text, max_tokens=limit) == passages_of(text, max_tokens=limit)


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n\u3000", " \n" * 10_000])
def test_white_space_gives_no_passages(text: str) -> None:
    assert passages_of(text) == []


def test_short_text_is_one_passage_without_its_outer_white_space() -> None:
    assert passages_of("\n  One short text.  \n") == [Passage(3, 18, n_tokens=6)]


def test_passages_are_filled_with_whole_sentences() -> None:
    """20 tokens of room hold three sentences of 6 tokens, not four."""
    text = " ".join(sentence(5) for _ in range(6))
    assert quotes_of(text, max_tokens=22) == [" ".join(sentence(5) for _ in range(3))] * 2


def test_a_blank_line_is_preferred_to_a_later_sentence_end() -> None:
    first, second = f"{sentence(5)} {sentence(5)}", f"{sentence(5)} {sentence(5)}"
    assert quotes_of(f"{first}\n\n{second}", max_tokens=22) == [first, second]


def test_a_sentence_end_is_preferred_to_a_later_line_end() -> None:
    text = f"{sentence(9)} Beta beta\n{'gamma ' * 20}"
    assert quotes_of(text, max_tokens=22)[0] == sentence(9)


def test_a_line_end_is_preferred_to_a_later_word_end() -> None:
    line = " ".join(["alpha"] * 10)
    assert quotes_of("\n".join([line] * 3), max_tokens=20) == [line] * 3


def test_text_without_sentence_ends_is_cut_between_words() -> None:
    assert all(set(q.split()) == {"word"} for q in quotes_of("word " * 1000, max_tokens=50))


def test_a_heading_goes_with_what_follows_it() -> None:
    text = f"{sentence(12)}\n\nA heading\n\n{sentence(12)}"
    assert quotes_of(text, max_tokens=22) == [sentence(12), f"A heading\n\n{sentence(12)}"]


def test_overlap_repeats_whole_sentences() -> None:
    """20 tokens of room, sentences of 6: each next passage repeats the last sentence, 6 tokens <= 8."""
    sentences = [sentence(5, start) for start in ("One", "Two", "Three", "Four", "Five")]
    quotes = quotes_of(" ".join(sentences), max_tokens=22, overlap_tokens=8)
    assert quotes == [" ".join(sentences[0:3]), " ".join(sentences[2:5])]


def test_overlap_repeats_words_where_a_sentence_is_cut() -> None:
    words = [
        f"{a}{b}" for a in ("red", "blue") for b in (" one", " two", " six", " ten", " cat", " dog", " sun")
    ]
    one, two = quotes_of(" ".join(words), max_tokens=22, overlap_tokens=4)[:2]
    assert one.split()[-4:] == two.split()[:4]


def test_nothing_is_repeated_after_a_blank_line() -> None:
    first, second = f"{sentence(5)} {sentence(5)}", f"{sentence(5)} {sentence(6)}"
    assert quotes_of(f"{first}\n\n{second}", max_tokens=22, overlap_tokens=10) == [first, second]


def test_overlap_never_makes_a_sentence_be_cut_that_fits_without_it() -> None:
    text = f"{sentence(8)} {sentence(5)} {sentence(18)} {sentence(18)}"
    quotes = quotes_of(text, max_tokens=22, overlap_tokens=10)
    assert quotes == [f"{sentence(8)} {sentence(5)}", sentence(18), sentence(18)]


def test_a_small_remainder_is_balanced_with_the_passage_before() -> None:
    sizes = [p.n_tokens for p in passages_of("word " * 210, max_tokens=202)]
    assert sizes == [128, 86]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met J. Doe, e.g. at No. 7, in the U.S. Senate etc. Nobody knew 3.14 of them",
        "1. First of all",
        "Wait... what is this",
        "“Why?” he asked",
    ],
)
def test_full_stops_that_end_no_sentence_are_no_borders(text: str) -> None:
    borders = find_borders(text, TOKENIZER.tokenize(text), max_chars=1000)
    assert text[: borders.positions[borders.levels >= SENTENCE][0]] == text


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("吾輩は猫である。", "名前はまだ無い。"),
        ("你好吗？", "我很好！"),
        ("“That is it.”", "She left."),
        ("(All of it.)", "Then more."),
        ("यह एक वाक्य है।", "यह दूसरा है।"),
        ("هل هذا صحيح؟", "نعم."),
    ],
)
def test_sentences_of_many_scripts_end_where_their_readers_see_it(one: str, two: str) -> None:
    joint = "" if one[-1] in "。？" else " "
    text = joint.join([one, two] * 20)
    for quote in quotes_of(text, max_tokens=40):
        assert quote.startswith((one, two))
        assert quote.endswith((one, two))


def test_a_megabyte_on_one_line_is_split_at_sentence_ends() -> None:
    line = " ".join(sentence(12) for _ in range(17_000))
    assert len(line) > 1_000_000
    assert all(q.startswith("Alpha") and q.endswith("word.") for q in quotes_of(line))


def test_a_word_of_100_000_letters_becomes_passages_of_bounded_length() -> None:
    passages = passages_of("a" * 100_000)
    assert sum(p.end - p.start for p in passages) == 100_000
    assert max(p.end - p.start for p in passages) <= 16 * ENCODER_LIMIT


def test_white_space_is_not_quoted_at_length() -> None:
    assert quotes_of(f"one{' ' * 50_000}two") == ["one", "two"]


@pytest.mark.parametrize(
    "text", ["." * 20_000, ". " * 20_000, "a\u0301" + "\u0301" * 20_000, "\ufffd" * 20_000]
)
def test_text_without_words_is_covered_within_the_limit(text: str) -> None:
    passages = passages_of(text)
    assert max(p.n_tokens for p in passages) <= ENCODER_LIMIT
    assert "".join(text[p.start : p.end] for p in passages) == text.replace(" ", "") or ". " in text


def test_a_grapheme_cluster_with_more_tokens_than_fit_is_cut() -> None:
    """Each virama joins the next letter to the same cluster, so this is one cluster of 301 code points."""
    text = "क\u094d" * 150 + "क"
    assert max(p.n_tokens for p in passages_of(text, max_tokens=16)) <= 16


def test_lone_surrogates_keep_their_place() -> None:
    text = "one \ud800 two"
    assert passages_of(text) == [Passage(0, len(text), n_tokens=TOKENIZER.count(text) + 2)]


def test_a_title_counts_with_at_most_a_quarter_of_the_limit() -> None:
    passages = passages_of("word " * 400, title="title " * 500, max_tokens=64)
    assert max(p.n_tokens for p in passages) == 64 - 16 + ENCODER_LIMIT // 4  # which the encoder reads of it


def test_the_encoders_limit_holds_where_the_settings_allow_more() -> None:
    assert max(p.n_tokens for p in passages_of("word " * 2000, max_tokens=512)) <= ENCODER_LIMIT


def test_a_limit_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        passages_of("word", max_tokens=15)


def test_page_is_the_one_on_which_the_passage_starts() -> None:
    pages = [sentence(18), sentence(18), "", sentence(18)]
    text = "\n\n".join(pages)
    starts = (0, text.index("Alpha", 1), text.rindex("Alpha") - 2, text.rindex("Alpha"))
    assert [p.page for p in passages_of(text, max_tokens=22, page_starts=starts)] == [1, 2, 4]


def test_documents_without_pages_have_passages_without_page() -> None:
    assert passages_of("A text.")[0].page is None


@pytest.mark.parametrize("language", ["eng", "deu_1901", "jpn", "cmn_hans", "tha", "hin", "arb", "kor"])
def test_real_texts_are_covered_within_limits(language: str) -> None:
    text = human_rights(language)
    passages = passages_of(text, overlap_tokens=32)
    assert max(p.n_tokens for p in passages) <= ENCODER_LIMIT
    gaps = [text[one.end : two.start] for one, two in pairwise(passages) if one.end < two.start]
    assert "".join(gaps).strip() == ""
    assert (text[: passages[0].start] + text[passages[-1].end :]).strip() == ""


def test_most_passages_of_real_english_text_end_a_sentence_or_clause() -> None:
    text = human_rights("eng")
    assert all(text[p.end - 1] in ".;," for p in passages_of(text, overlap_tokens=32))
