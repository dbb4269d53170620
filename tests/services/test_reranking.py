"""The second stage over real rows, vectors and words, with a reader that counts shared words."""

import dataclasses
from collections.abc import Sequence

import pytest

from app.domain import Hit, PassageHit, Rerank
from app.engine.combination import Combination
from app.engine.reading_models import ReadingModels
from app.errors import BlankText, ModelNotConfigured, TextTooLong
from app.services.reranking import best_passages, first_stage_shares, passages_in_turn
from app.services.search import Search
from tests.reading_substitutes import MAX_QUESTION_TOKENS, WordOverlapReader
from tests.services.library import NAME, Library
from tests.services.test_hybrid import MODES, random_texts, scores

QUERY = "castle harbour"


def search_with(
    library: Library, reranker: WordOverlapReader, reader: WordOverlapReader | None = None
) -> Search:
    models = ReadingModels(reranker, reader or reranker)
    return Search(library.rows, library.index, library.embedder, models)


@pytest.mark.parametrize("mode", MODES)
def test_a_reranked_score_and_its_rank_do_not_depend_on_top_k(library: Library, mode: str) -> None:
    library.put(random_texts(300))
    search = search_with(library, WordOverlapReader())
    deep, *others = (
        scores(
            search.asymmetric(NAME, QUERY, top_k=top_k, mode=mode, rerank=Rerank(20)).hits  # type: ignore[arg-type]
        )
        for top_k in (200, 1, 10, 50)
    )
    assert [found == deep[: len(found)] for found in others] == [True] * 3


@pytest.mark.parametrize("method", ["linear", "standard", "rrf"])
def test_hits_are_in_order_of_the_combined_score_and_show_every_stage(library: Library, method: str) -> None:
    library.put(random_texts(200))
    combination = Combination(method, rerank=1.0, first_stage=0.5)  # type: ignore[arg-type]
    search = search_with(library, WordOverlapReader(combination=combination))
    result = search.asymmetric(NAME, QUERY, top_k=60, rerank=Rerank(30))
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    for hit in result.hits:
        assert None not in (hit.similarity, hit.lexical, hit.fused)
        assert (hit.rerank is None) == (hit.relevance is None)
    assert sum(hit.rerank is not None for hit in result.hits) == 30
    assert all(hit.rerank is not None for hit in result.hits[:10])
    assert "rerank" in result.timings_ms


def test_the_second_stage_looks_deeper_than_top_k(library: Library) -> None:
    library.put(random_texts(200))
    reranker = WordOverlapReader(combination=Combination())
    plain = library.search.asymmetric(NAME, QUERY, top_k=20).hits
    (best,) = search_with(library, reranker).asymmetric(NAME, QUERY, top_k=1, rerank=Rerank(20)).hits
    assert reranker.n_read == 20
    assert best.document_id in {hit.document_id for hit in plain}
    assert best.rerank == 1.0


def test_what_it_did_is_told(library: Library) -> None:
    library.put(random_texts(200))
    result = search_with(library, WordOverlapReader()).asymmetric(NAME, QUERY, rerank=Rerank(25))
    assert result.reranking is not None
    assert dataclasses.astuple(result.reranking) == ("word-overlap", 25, 25, 0, 2, MAX_QUESTION_TOKENS)


def test_a_budget_reranks_the_first_ones_and_tells_how_many(library: Library) -> None:
    library.put(random_texts(200))
    reranker = WordOverlapReader(combination=Combination(), n_in_time=12)
    search = search_with(library, reranker)
    result = search.asymmetric(NAME, QUERY, top_k=20, rerank=Rerank(20, budget_ms=60_000))
    assert result.reranking is not None
    assert (result.reranking.n_reranked, result.reranking.n_candidates) == (12, 20)
    first = [hit.document_id for hit in library.search.asymmetric(NAME, QUERY, top_k=20).hits]
    reranked = [hit.document_id for hit in result.hits if hit.rerank is not None]
    assert sorted(reranked) == sorted(first[:12])
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


class LateReader(WordOverlapReader):
    """Says that it took a thousand seconds to load."""

    def load(self) -> float:
        return 1000.0


def test_loading_the_model_is_no_part_of_the_budget_and_is_told(library: Library) -> None:
    library.put(random_texts(50))
    result = search_with(library, LateReader()).asymmetric(NAME, QUERY, rerank=Rerank(20, budget_ms=1))
    assert result.reranking is not None
    assert result.reranking.n_reranked == 20
    assert list(result.timings_ms) == ["encode", "retrieve", "fetch", "load", "rerank", "total"]


def test_without_any_time_the_first_stage_decides(library: Library) -> None:
    library.put(random_texts(50))
    search = search_with(library, WordOverlapReader())
    result = search.asymmetric(NAME, QUERY, rerank=Rerank(20, budget_ms=0))
    assert result.reranking is not None
    assert result.reranking.n_reranked == 0
    assert scores(result.hits) == scores(library.search.asymmetric(NAME, QUERY).hits)


def test_a_document_counts_as_its_most_relevant_passage_which_is_shown_first(library: Library) -> None:
    """Two passages that cannot be one; the second one has both words."""
    filler = " ".join(f"filler{i}" for i in range(150))
    library.put({"long": f"castle {filler}.\n\n{filler} harbour castle.", "other": "A garden."})
    search = search_with(library, WordOverlapReader())
    result = search.asymmetric(NAME, QUERY, rerank=Rerank(20), passages_per_hit=1)
    assert result.reranking is not None
    assert result.reranking.n_candidates >= 3
    hit = result.hits[0]
    assert (hit.document_id, hit.rerank) == ("long", 1.0)
    assert [("harbour" in passage.text, passage.rerank) for passage in hit.passages] == [(True, 1.0)]


def test_answers_come_out_of_the_pass_that_reranks(library: Library) -> None:
    library.put({"a": "The castle is Wawel.", "b": "The harbour is Gdynia."})
    joint = WordOverlapReader()
    result = search_with(library, joint).asymmetric(NAME, "the castle is", rerank=Rerank(), answers=True)
    assert joint.n_calls == 1
    for hit in result.hits:
        assert hit.answer is not None
        document = library.rows.document(library.collection.key, hit.document_id).document
        assert document.text[hit.answer.start : hit.answer.end] == hit.answer.text
    assert result.hits[0].answer is not None
    assert result.hits[0].answer.text == "Wawel"


def test_a_reranker_that_reads_a_part_ranks_alike_with_and_without_answers(library: Library) -> None:
    library.put(random_texts(60))
    joint = WordOverlapReader()
    joint.max_text_tokens = 8
    search = search_with(library, joint)
    plain = search.asymmetric(NAME, QUERY, rerank=Rerank())
    answered = search.asymmetric(NAME, QUERY, rerank=Rerank(), answers=True)
    assert [(hit.document_id, hit.score) for hit in plain.hits] == [
        (hit.document_id, hit.score) for hit in answered.hits
    ]
    assert all(hit.answer is not None for hit in answered.hits)


def test_another_reader_than_the_reranker_reads_the_hits_alone(library: Library) -> None:
    library.put(random_texts(60))
    reader = WordOverlapReader()
    search = search_with(library, WordOverlapReader(), reader)
    result = search.asymmetric(NAME, QUERY, top_k=5, rerank=Rerank(20), answers=True)
    assert (reader.n_calls, reader.n_read) == (1, 5)
    assert all(hit.answer is not None for hit in result.hits)


def test_answers_need_no_reranking(library: Library) -> None:
    library.put(random_texts(60))
    search = search_with(library, WordOverlapReader())
    result = search.asymmetric(NAME, QUERY, top_k=5, answers=True)
    assert result.reranking is None
    assert all(hit.answer is not None and hit.rerank is None for hit in result.hits)
    assert scores(result.hits) == scores(library.search.asymmetric(NAME, QUERY, top_k=5).hits)


def test_a_query_longer_than_the_reranker_takes_is_cut_refused_or_left_to_the_first_stage(
    library: Library,
) -> None:
    library.put(random_texts(30))
    search = search_with(library, WordOverlapReader())
    query = "castle " * 20
    cut = search.asymmetric(NAME, query, rerank=Rerank()).reranking
    assert cut is not None
    assert cut.n_query_tokens == 20
    with pytest.raises(TextTooLong, match="has 20 tokens, the reranker takes 16") as caught:
        search.asymmetric(NAME, query, rerank=Rerank(), truncate=False)
    assert caught.value.where == ("query",)
    left = search.asymmetric(NAME, query, rerank=Rerank(is_required=False), truncate=False)
    assert left.reranking is None
    assert left.notices == ("not reranked: the query has 20 tokens, the reranker takes 16",)


def test_without_a_model_reranking_and_answers_are_refused(library: Library) -> None:
    with pytest.raises(ModelNotConfigured, match="set BIFOCAL_RERANKER"):
        library.search.asymmetric(NAME, QUERY, rerank=Rerank())
    with pytest.raises(ModelNotConfigured, match="set BIFOCAL_READER"):
        library.search.asymmetric(NAME, QUERY, answers=True)


@pytest.mark.parametrize("query", ["the of and", "?!", "😀", "x" * 10_000])
def test_odd_queries_are_reranked(library: Library, query: str) -> None:
    library.put(random_texts(30))
    result = search_with(library, WordOverlapReader()).asymmetric(NAME, query, rerank=Rerank(), answers=True)
    assert len(result.hits) == 10


def test_a_blank_query_is_refused_and_an_empty_collection_has_no_hits(library: Library) -> None:
    search = search_with(library, WordOverlapReader())
    with pytest.raises(BlankText):
        search.asymmetric(NAME, " ", rerank=Rerank())
    result = search.asymmetric(NAME, QUERY, rerank=Rerank(), answers=True)
    assert result.hits == ()
    assert result.reranking is not None
    assert result.reranking.n_candidates == 0


def made_hits(passages_of: Sequence[Sequence[float]]) -> list[Hit]:
    return [
        Hit(
            document_id=str(i),
            title=None,
            metadata={},
            score=max(fused),
            similarity=0.5,
            lexical=0.0,
            fused=max(fused),
            passages=tuple(PassageHit(0, 1, "x", None, 0.5, 0.0, score) for score in fused),
        )
        for i, fused in enumerate(passages_of)
    ]


def test_each_document_is_looked_at_before_any_second_passage() -> None:
    hits = made_hits([[0.9, 0.8], [0.7], [0.6, 0.5, 0.4]])
    assert passages_in_turn(hits, 2) == [(0, 0), (1, 0)]
    assert passages_in_turn(hits, 5) == [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1)]
    assert passages_in_turn(hits, 9) == [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (2, 2)]


def test_the_best_passages_may_be_of_one_document() -> None:
    hits = made_hits([[0.9, 0.8], [0.7], [0.6, 0.5, 0.4]])
    assert best_passages(hits, 3) == [(0, 0), (0, 1), (1, 0)]


def test_the_first_stage_is_on_a_scale_of_its_own() -> None:
    rrf = [dataclasses.replace(hit, fused=1 / 61, score=1 / 61) for hit in made_hits([[0.1]])]
    cosine = [dataclasses.replace(hit, fused=None, score=0.5) for hit in made_hits([[0.1], [0.1]])]
    cosine[1] = dataclasses.replace(cosine[1], score=-0.25)
    words = [dataclasses.replace(hit, fused=None, similarity=None, score=8.0) for hit in made_hits([[0.1]])]
    assert first_stage_shares(made_hits([[0.9], [0.3]])).tolist() == [0.9, 0.3]
    assert first_stage_shares(rrf).tolist() == [0.5]
    assert first_stage_shares(cosine).tolist() == [1.0, 0.5]
    assert first_stage_shares(words).tolist() == [1.0]
