"""Answers out of a collection and out of given texts, with a reader that counts shared words."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import Answer, PassageHit
from app.engine.reading_models import ReadingModels
from app.errors import BlankText, CollectionNotFound, ModelNotConfigured
from app.services.answering import Answering, merge, normalised
from app.services.answers import FoundAnswer
from tests.reading_substitutes import MAX_QUESTION_TOKENS, WordOverlapReader, overlap_models
from tests.services.library import NAME, Library

QUESTION = "what is the capital of Poland"
TEXTS = {
    "poland": "The capital of Poland is Warszawa. It is large.",
    "czechia": "The capital of Czechia is Praha.",
    "again": "Poland has a capital, and that is Warszawa.",
    "garden": "A garden is nice.",
}


def test_answers_are_quotations_best_first_and_none_twice(library: Library) -> None:
    library.put(TEXTS, title="Cities")
    result = Answering(overlap_models()).from_collection(
        NAME, QUESTION, search=library.search, rows=library.rows, top_k=5
    )
    best = result.answers[0]
    assert (best.answer.text, best.document_id, best.title) == ("Warszawa", "poland", "Cities")
    assert best.n_occurrences == 2
    for found in result.answers:
        text = library.rows.document(library.collection.key, found.document_id or "").document.text
        assert text[found.answer.start : found.answer.end] == found.answer.text
        assert text[found.passage.start : found.passage.end] == found.passage.text
    logits = [found.answer.logit for found in result.answers]
    assert logits == sorted(logits, reverse=True)
    assert result.answerable_probability == best.answer.score
    words = [normalised(found.answer.text) for found in result.answers]
    assert len(set(words)) == len(words)
    assert list(result.timings_ms) == ["encode", "retrieve", "fetch", "read", "total"]


def test_passages_without_an_answer_do_not_hide_one(library: Library) -> None:
    """A passage that surely has none, with the least logit there is, changes nothing about the others."""
    models = overlap_models()
    alone = Answering(models).from_contexts(QUESTION, [TEXTS["poland"]])
    among = Answering(models).from_contexts(QUESTION, ["A b.", TEXTS["poland"], *["X y z."] * 19])
    assert among.answers[0].answer == alone.answers[0].answer
    assert among.answerable_probability == alone.answerable_probability


def test_several_passages_of_one_document_may_be_read(library: Library) -> None:
    filler = " ".join(f"filler{i}" for i in range(150))
    library.put({"long": f"Poland {filler}.\n\n{filler} capital Poland Warszawa.", "x": "A garden."})
    result = Answering(overlap_models()).from_collection(
        NAME, "capital Poland", search=library.search, rows=library.rows, candidates=10
    )
    assert result.n_read == result.n_candidates >= 3


def test_a_budget_reads_fewer_and_tells_it(library: Library) -> None:
    library.put({str(i): f"The capital number {i} is town{i}." for i in range(30)})
    joint = WordOverlapReader(n_in_time=7)
    result = Answering(ReadingModels(joint, joint)).from_collection(
        NAME, QUESTION, search=library.search, rows=library.rows, budget_ms=60_000
    )
    assert (result.n_read, result.n_candidates) == (7, 20)
    none = Answering(ReadingModels(joint, joint)).from_collection(
        NAME, QUESTION, search=library.search, rows=library.rows, budget_ms=0
    )
    assert (none.n_read, none.answers, none.answerable_probability) == (0, (), 0.0)


def test_loading_the_models_is_no_part_of_the_budget_and_is_told(library: Library) -> None:
    class LateReader(WordOverlapReader):
        def load(self) -> float:
            return 1000.0

    library.put(TEXTS)
    late = LateReader()
    result = Answering(ReadingModels(late, late)).from_collection(
        NAME, QUESTION, search=library.search, rows=library.rows, budget_ms=1
    )
    assert result.n_read == len(TEXTS)
    assert list(result.timings_ms) == ["encode", "retrieve", "fetch", "load", "read", "total"]


def test_another_reranker_judges_the_passages_of_a_reader(library: Library) -> None:
    class BareReader(WordOverlapReader):
        def _reading(self, asked: set[str], passage: object, n_spans: int) -> object:  # type: ignore[override]
            reading = super()._reading(asked, passage, n_spans)  # type: ignore[arg-type]
            return dataclasses.replace(reading, relevance=None)

    reranker = WordOverlapReader()
    result = Answering(ReadingModels(reranker, BareReader())).from_contexts(QUESTION, [TEXTS["poland"]])
    assert reranker.n_calls == 1
    assert result.answers[0].answer.relevance == 2.0 * 5 - 3


def test_no_contexts_and_blank_contexts_have_no_answer() -> None:
    for contexts, blank in (([], ()), (["", " \n", "\u200b"], (0, 1, 2))):
        result = Answering(overlap_models()).from_contexts(QUESTION, contexts)
        assert (result.answers, result.answerable_probability) == ((), 0.0)
        assert result.unread_contexts == blank


def test_an_answer_names_its_place_among_the_contexts_with_blank_ones() -> None:
    result = Answering(overlap_models()).from_contexts(QUESTION, ["", "A b.", TEXTS["poland"]])
    assert (result.answers[0].context, result.unread_contexts) == (2, (0,))


def test_an_empty_collection_has_no_answer_and_an_unknown_one_is_refused(library: Library) -> None:
    asked = Answering(overlap_models())
    result = asked.from_collection(NAME, QUESTION, search=library.search, rows=library.rows)
    assert (result.answers, result.n_candidates) == ((), 0)
    with pytest.raises(CollectionNotFound):
        asked.from_collection("other", QUESTION, search=library.search, rows=library.rows)


@pytest.mark.parametrize("question", ["", " \n", "\u200b"])
def test_a_blank_question_is_refused(library: Library, question: str) -> None:
    with pytest.raises(BlankText) as caught:
        Answering(overlap_models()).from_contexts(question, ["x"])
    assert caught.value.where == ("question",)


@pytest.mark.parametrize("question", ["the of and", "?!", "😀", "x " * 500])
def test_odd_questions_have_defined_answers(library: Library, question: str) -> None:
    library.put(TEXTS)
    result = Answering(overlap_models()).from_collection(
        NAME, question, search=library.search, rows=library.rows
    )
    assert result.n_read == 4
    assert (result.n_question_tokens > result.max_question_tokens) == (len(question) > 100)
    assert result.max_question_tokens == MAX_QUESTION_TOKENS


def test_without_a_reader_it_is_refused() -> None:
    with pytest.raises(ModelNotConfigured, match="set BIFOCAL_READER"):
        Answering(ReadingModels())


def found(text: str, *, start: int = 0, logit: float = 0.0, document_id: str = "a") -> FoundAnswer:
    answer = Answer(text, start, start + len(text), None, 0.5, logit, 0.0, None)
    passage = PassageHit(start, start + len(text), text, None, None)
    return FoundAnswer(answer, passage, document_id, None, None, 1)


def test_answers_that_overlap_in_a_document_are_one() -> None:
    merged = merge([found("blue castle", logit=1), found("castle hill", start=5, logit=2)])
    assert [(each.answer.text, each.n_occurrences) for each in merged] == [("castle hill", 2)]
    apart = merge([found("blue castle", logit=1), found("castle hill", start=5, document_id="b")])
    assert len(apart) == 2


def test_what_differs_by_case_articles_and_punctuation_says_the_same() -> None:
    assert len(merge([found("The Castle."), found("castle", start=50), found("a castle", start=90)])) == 1
    assert len(merge([found("?"), found("!", start=9)])) == 2


def test_equal_answers_are_in_order_of_their_documents() -> None:
    merged = merge([found(text, document_id=text) for text in ("c", "b", "d")])
    assert [each.document_id for each in merged] == ["b", "c", "d"]


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 30), st.floats(-9, 9)), max_size=12))
def test_merging_keeps_the_best_of_all_and_counts_every_one(made: list[tuple[str, int, float]]) -> None:
    answers = [found(text, start=start, logit=logit) for text, start, logit in made]
    merged = merge(answers)
    assert sum(each.n_occurrences for each in merged) == len(answers)
    if answers:
        assert merged[0].answer.logit == max(each.answer.logit for each in answers)
