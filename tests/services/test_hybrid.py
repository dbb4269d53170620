"""The three modes of asymmetric search over real rows, vectors and words."""

import random
from contextlib import closing
from typing import get_args

import pytest

from app.domain import Fusion, Hit, Mode, SearchSettings
from app.errors import BlankText, FingerprintMismatch, StorageDamaged
from app.services.search import WITHOUT_WORDS, Search
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.lexical.files import META
from tests.services.library import NAME, Library
from tests.substitutes import WordHashEmbedder

WORDS = ["river", "mountain", "bridge", "castle", "market", "harbour", "forest", "garden", "tower", "valley"]
MODES: tuple[Mode, ...] = get_args(Mode)


def random_texts(n: int) -> dict[str, str]:
    choose = random.Random(7)
    return {
        f"{i:04}": f"The {' '.join(choose.choices(WORDS, k=choose.randint(2, 9)))} number {i}."
        for i in range(n)
    }


def scores(hits: tuple[Hit, ...]) -> list[tuple[str, float]]:
    return [(hit.document_id, hit.score) for hit in hits]


@pytest.mark.parametrize("mode", MODES)
def test_a_score_and_its_rank_do_not_depend_on_top_k(library: Library, mode: Mode) -> None:
    library.put(random_texts(900))
    deep = scores(library.search.asymmetric(NAME, "castle harbour", top_k=900, mode=mode).hits)
    for top_k in (1, 10, 250):
        assert (
            scores(library.search.asymmetric(NAME, "castle harbour", top_k=top_k, mode=mode).hits)
            == (deep[:top_k])
        )


def test_a_document_found_by_its_words_alone_has_the_same_fused_ranks_for_every_top_k(
    library: Library,
) -> None:
    """A deep search sees hundreds of passages that are nearer by vector; they must not push it down."""
    library.put(random_texts(900))
    library.put({"rare": f"{'Unrelated ' * 6}{' '.join(f'word{i}' for i in range(90))}."})
    query, rrf = "castle castle unrelated harbour river market", Fusion("rrf")
    few, many = (
        scores(library.search.asymmetric(NAME, query, top_k=top_k, fusion=rrf).hits) for top_k in (100, 901)
    )
    assert "rare" in dict(few)
    assert few == many[:100]


@pytest.mark.parametrize("depth", [10, 200])
def test_scores_do_not_depend_on_top_k_at_any_depth_of_fusion(library: Library, depth: int) -> None:
    library.put(random_texts(400))
    fusion = Fusion(depth=depth)
    deep = scores(library.search.asymmetric(NAME, "castle harbour", top_k=400, fusion=fusion).hits)
    shallow = scores(library.search.asymmetric(NAME, "castle harbour", top_k=15, fusion=fusion).hits)
    assert shallow == deep[:15]


def test_hybrid_search_is_as_deep_as_its_fusion_says(library: Library) -> None:
    """The rare word counts most in BM25, the short texts are nearest: beyond the depth they have no words."""
    library.put({f"near {i}": "Castle." for i in range(200)})
    library.put({f"rare {i}": "Harbour of seven other small towns." for i in range(20)})
    for depth, is_among_the_best in ((5, False), (100, True)):
        hits = library.search.asymmetric(NAME, "castle harbour", top_k=400, fusion=Fusion(depth=depth)).hits
        words = {hit.document_id: hit.lexical for hit in hits}
        assert bool(words["near 0"]) is is_among_the_best


def test_the_settings_of_a_collection_decide_where_a_search_does_not(library: Library) -> None:
    library.put(random_texts(50))
    rrf = scores(library.search.asymmetric(NAME, "castle", fusion=Fusion("rrf")).hits)
    library.rows.set_search_settings(NAME, SearchSettings(Fusion("rrf")))
    assert scores(library.search.asymmetric(NAME, "castle").hits) == rrf


@pytest.mark.parametrize("fusion", [Fusion("convex", 0.3), Fusion("convex", 0.9), Fusion("rrf")])
def test_hybrid_returns_every_document_for_a_large_top_k(library: Library, fusion: Fusion) -> None:
    library.put(random_texts(700))
    hits = library.search.asymmetric(NAME, "castle harbour", top_k=1000, fusion=fusion).hits
    assert len({hit.document_id for hit in hits}) == 700
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_hybrid_keeps_the_score_of_every_stage(library: Library) -> None:
    """w (c + 1) / (best c + 1) + (1 - w) b / best b, with c and b as the hits report them."""
    library.put(random_texts(50))
    hits = library.search.asymmetric(NAME, "castle harbour", top_k=50, fusion=Fusion("convex", 0.6)).hits
    best_cosine = max(hit.similarity or 0 for hit in hits)
    best_words = max(hit.lexical or 0 for hit in hits)
    for hit in hits:
        assert hit.similarity is not None
        assert hit.lexical is not None
        expected = 0.6 * (hit.similarity + 1) / (best_cosine + 1) + 0.4 * hit.lexical / best_words
        assert hit.fused == hit.score == pytest.approx(expected, abs=2e-5)


def test_dense_and_lexical_hits_leave_the_other_stages_unset(library: Library) -> None:
    library.put(random_texts(20))
    dense = library.search.asymmetric(NAME, "castle", mode="dense").hits[0]
    lexical = library.search.asymmetric(NAME, "castle", mode="lexical").hits[0]
    assert (dense.lexical, dense.fused, dense.score) == (None, None, dense.similarity)
    assert (lexical.similarity, lexical.fused, lexical.score) == (None, None, lexical.lexical)


def test_lexical_returns_only_documents_with_a_word_of_the_query(library: Library) -> None:
    library.put({"a": "A river.", "b": "A castle.", "c": "A castle by a river."})
    hits = library.search.asymmetric(NAME, "rivers", mode="lexical").hits
    assert sorted(hit.document_id for hit in hits) == ["a", "c"]


def test_lexical_does_not_encode_the_query(library: Library) -> None:
    library.put({"a": "A river."})
    before = library.embedder.n_texts
    result = library.search.asymmetric(NAME, "river", mode="lexical")
    assert library.embedder.n_texts == before
    assert result.n_query_tokens == 0
    assert "encode" not in result.timings_ms


def test_lexical_searches_a_collection_of_another_model_and_dense_refuses(library: Library) -> None:
    library.put({"a": "A river."})
    other = Search(library.rows, library.index, WordHashEmbedder(fingerprint="other"))
    assert other.asymmetric(NAME, "river", mode="lexical").hits[0].document_id == "a"
    with pytest.raises(FingerprintMismatch):
        other.asymmetric(NAME, "river", mode="hybrid")


@pytest.mark.parametrize("mode", MODES)
def test_a_blank_query_is_refused(library: Library, mode: Mode) -> None:
    library.put({"a": "A river."})
    with pytest.raises(BlankText) as refusal:
        library.search.asymmetric(NAME, " \n ", mode=mode)
    assert refusal.value.where == ("query",)


@pytest.mark.parametrize("query", ["\u200b", "\ufeff\u2060", "\x00"])
def test_a_query_of_invisible_characters_is_blank_for_words_as_for_meaning(
    library: Library, query: str
) -> None:
    library.put({"a": "A river."})
    with pytest.raises(BlankText):
        library.search.asymmetric(NAME, query, mode="lexical")


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_collection_has_no_hits(library: Library, mode: Mode) -> None:
    assert library.search.asymmetric(NAME, "river", mode=mode).hits == ()


@pytest.mark.parametrize("query", ["???", "🙂", "the of and", 'title:x AND "unbalanced', "* c++ a:b"])
@pytest.mark.parametrize("mode", MODES)
def test_odd_queries_have_a_defined_answer(library: Library, mode: Mode, query: str) -> None:
    library.put(random_texts(30))
    hits = library.search.asymmetric(NAME, query, top_k=5, mode=mode).hits
    assert len(hits) == 5 or mode == "lexical"


def test_a_lone_hit_is_not_worth_zero(library: Library) -> None:
    library.put({"a": "A river."})
    assert library.search.asymmetric(NAME, "river").hits[0].fused == pytest.approx(1.0)


@pytest.mark.parametrize("mode", MODES)
def test_equal_scores_are_ordered_by_id_wherever_the_page_ends(library: Library, mode: Mode) -> None:
    names = [f"{i:03}" for i in range(400)]
    random.Random(1).shuffle(names)
    library.put(dict.fromkeys(names, "The same words everywhere."))
    hits = library.search.asymmetric(NAME, "same words", top_k=3, mode=mode).hits
    assert [hit.document_id for hit in hits] == ["000", "001", "002"]


@pytest.mark.parametrize("mode", MODES)
def test_a_replaced_text_is_found_by_its_new_words_only(library: Library, mode: Mode) -> None:
    library.put({"a": "A river.", "b": "A castle."})
    library.put({"a": "A lighthouse."})
    assert library.search.asymmetric(NAME, "lighthouse", mode=mode).hits[0].document_id == "a"
    hits = library.search.asymmetric(NAME, "river", mode=mode).hits
    assert all("river" not in hit.passages[0].text for hit in hits)
    assert len(hits) == (0 if mode == "lexical" else 2)


def damage_words(library: Library) -> None:
    """And let go of what is open, as another process would not have it."""
    library.index.maintain(library.collection)
    for file in library.folder.rglob(META):
        file.write_bytes(b"{")
    library.index.close()


def test_hybrid_goes_on_by_meaning_alone_and_says_so_while_the_words_are_damaged(library: Library) -> None:
    library.put(random_texts(20))
    before = library.search.asymmetric(NAME, "river bridge", mode="dense")
    assert library.search.asymmetric(NAME, "river bridge").notices == ()
    damage_words(library)
    found = library.search.asymmetric(NAME, "river bridge")
    assert found.notices == (WITHOUT_WORDS,)
    assert scores(found.hits) == scores(before.hits)
    assert all(hit.fused is None and hit.lexical is None for hit in found.hits)
    with pytest.raises(StorageDamaged, match="word index"):
        library.search.asymmetric(NAME, "river bridge", mode="lexical")


def test_hybrid_is_whole_again_when_the_words_are_built_anew(library: Library) -> None:
    library.put(random_texts(20))
    damage_words(library)
    assert library.search.asymmetric(NAME, "river bridge").notices
    with closing(EmbeddedIndex(library.rows, library.folder / "indexes", Settings())) as started_again:
        started_again.maintain(library.collection)
    found = library.search.asymmetric(NAME, "river bridge")
    assert found.notices == ()
    assert all(hit.fused is not None for hit in found.hits)
