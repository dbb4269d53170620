"""Search over real rows and a real index, with an encoder in which shared words are similarity."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.domain import Collection, SearchResult, View
from app.errors import BlankText, CollectionNotFound, DocumentNotFound, FingerprintMismatch, TextTooLong
from app.filters import parse_filter
from app.services import candidates
from app.services.search import Search
from app.storage.index import Candidates
from app.storage.rows import Keys
from tests.services.library import NAME, Library
from tests.substitutes import WordHashEmbedder

WORDS = ["river", "mountain", "bridge", "castle", "market", "harbour", "forest", "garden", "tower", "valley"]

TEXTS = {
    "river": "A river runs through the valley.",
    "bridge": "The bridge crosses the river.",
    "castle": "A castle stands on the mountain.",
}


def ids(result: SearchResult) -> list[str]:
    return [hit.document_id for hit in result.hits]


def test_asymmetric_ranks_the_document_that_shares_most_words_first(library: Library) -> None:
    library.put(TEXTS)
    assert ids(library.search.asymmetric(NAME, "bridge crosses"))[0] == "bridge"


def test_asymmetric_similarity_is_the_cosine_of_query_and_best_passage(library: Library) -> None:
    library.put(TEXTS)
    hit = library.search.asymmetric(NAME, "bridge crosses", top_k=1, mode="dense").hits[0]
    query = library.embedder.encode_queries(["bridge crosses"]).vectors[0]
    passage = library.embedder.encode_documents([TEXTS["bridge"]]).vectors[0]
    assert hit.similarity == pytest.approx(float(query @ passage), abs=1e-3)
    assert hit.similarity == hit.passages[0].similarity


def test_passages_of_a_hit_are_slices_of_its_text_best_first(library: Library) -> None:
    text = " ".join(
        f"{WORDS[i % 10].title()} number {i} is described here at some length." for i in range(120)
    )
    library.put({"long": text}, title="Places")
    hit = library.search.asymmetric(NAME, "castle number 63", passages_per_hit=3, mode="dense").hits[0]
    assert len(hit.passages) == 3
    assert [text[p.start : p.end] for p in hit.passages] == [p.text for p in hit.passages]
    similarities = [p.similarity or 0 for p in hit.passages]
    assert similarities == sorted(similarities, reverse=True)


def test_a_hit_carries_title_and_metadata(library: Library) -> None:
    library.put({"a": "Some text."}, title="A title", metadata={"year": 1999, "tags": ["x", "y"]})
    for result in (library.search.asymmetric(NAME, "text"), library.search.symmetric(NAME, text="text")):
        assert result.hits[0].title == "A title"
        assert dict(result.hits[0].metadata) == {"year": 1999, "tags": ["x", "y"]}


def test_a_score_does_not_depend_on_top_k(library: Library) -> None:
    library.put(random_texts(300))
    deep = library.search.asymmetric(NAME, "castle harbour", top_k=300)
    shallow = library.search.asymmetric(NAME, "castle harbour", top_k=7)
    assert [(h.document_id, h.similarity) for h in shallow.hits] == [
        (h.document_id, h.similarity) for h in deep.hits[:7]
    ]


def test_equal_similarities_are_ordered_by_id_wherever_the_page_ends(library: Library) -> None:
    names = [f"{i:03}" for i in range(300)]
    random.Random(1).shuffle(names)
    library.put(dict.fromkeys(names, "The same words everywhere."))
    assert ids(library.search.asymmetric(NAME, "same words", top_k=5)) == ["000", "001", "002", "003", "004"]
    assert ids(library.search.symmetric(NAME, text="same words", top_k=5)) == [
        "000",
        "001",
        "002",
        "003",
        "004",
    ]


def test_many_passages_of_one_document_do_not_crowd_out_others(library: Library) -> None:
    long = " ".join(f"The castle of the king, part {i}, is a castle." for i in range(4000))
    library.put({"long": long, "short": "A garden."})
    result = library.search.asymmetric(NAME, "castle king", top_k=2)
    assert library.rows.collection_stats(library.collection.key).n_passages > candidates.DEPTH
    assert ids(result) == ["long", "short"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.sampled_from(WORDS))), max_size=12),
    st.integers(1, 8),
)
def test_after_any_writes_exactly_min_of_top_k_and_live_documents_come_back(
    library: Library, writes: Sequence[tuple[str, str | None]], top_k: int
) -> None:
    library.delete(*"abcdef")
    live: dict[str, str] = {}
    for document_id, word in writes:
        if word is None:
            library.delete(document_id)
            live.pop(document_id, None)
        else:
            live[document_id] = f"The {word}."
            library.put({document_id: live[document_id]})
    result = library.search.asymmetric(NAME, "river", top_k=top_k)
    assert len(result.hits) == min(top_k, len(live))
    assert all(hit.passages[0].text == live[hit.document_id] for hit in result.hits)
    assert len(library.search.symmetric(NAME, text="river", top_k=top_k).hits) == min(top_k, len(live))


def test_symmetric_by_id_excludes_the_document_and_uses_its_stored_vector(library: Library) -> None:
    library.put({**TEXTS, "twin": TEXTS["river"]})
    before = library.embedder.n_texts
    result = library.search.symmetric(NAME, document_id="river", top_k=2)
    assert ids(result)[0] == "twin"
    assert result.hits[0].similarity == pytest.approx(1.0, abs=1e-3)
    assert "river" not in ids(result)
    assert len(result.hits) == 2
    assert library.embedder.n_texts == before


def test_symmetric_by_text_and_by_id_agree(library: Library) -> None:
    library.put(random_texts(50))
    first = library.rows.document(library.collection.key, "0").document
    by_id = library.search.symmetric(NAME, document_id="0", top_k=10)
    by_text = [
        hit
        for hit in library.search.symmetric(NAME, text=first.text, top_k=11).hits
        if hit.document_id != "0"
    ]
    assert [h.similarity for h in by_id.hits] == pytest.approx([h.similarity for h in by_text[:10]], abs=2e-3)


def test_symmetric_takes_either_a_text_or_an_id(library: Library) -> None:
    with pytest.raises(ValueError, match="either"):
        library.search.symmetric(NAME)
    with pytest.raises(ValueError, match="either"):
        library.search.symmetric(NAME, text="a", document_id="a")


def test_symmetric_by_an_unknown_id_says_so(library: Library) -> None:
    with pytest.raises(DocumentNotFound):
        library.search.symmetric(NAME, document_id="nothing")


def test_an_unknown_collection_is_named(library: Library) -> None:
    with pytest.raises(CollectionNotFound, match="elsewhere"):
        library.search.asymmetric("elsewhere", "query")


def test_an_empty_collection_gives_no_hits(library: Library) -> None:
    assert library.search.asymmetric(NAME, "query").hits == ()
    assert library.search.symmetric(NAME, text="query").hits == ()


def test_a_blank_query_is_refused_by_the_name_of_its_field(library: Library) -> None:
    with pytest.raises(BlankText) as asymmetric:
        library.search.asymmetric(NAME, " \n")
    with pytest.raises(BlankText) as symmetric:
        library.search.symmetric(NAME, text="\t")
    assert asymmetric.value.where == ("query",)
    assert symmetric.value.where == ("text",)


def test_another_model_is_refused_with_both_named_and_the_way_out(library: Library) -> None:
    other = Search(library.rows, library.index, WordHashEmbedder(fingerprint="word-hash-2"))
    with pytest.raises(FingerprintMismatch, match=r"word-hash-1.*word-hash-2.*BIFOCAL_EMBEDDER"):
        other.asymmetric(NAME, "query")
    with pytest.raises(FingerprintMismatch):
        other.symmetric(NAME, text="query")


def test_a_query_too_long_is_refused_with_its_count_if_it_must_not_be_cut(library: Library) -> None:
    class Strict(WordHashEmbedder):
        def encode_queries(self, texts: Sequence[str], *, truncate: bool = True):  # type: ignore[no-untyped-def]
            assert not truncate
            raise TextTooLong("text 0 is long", n_tokens=300, max_tokens=256, where=("texts", 0))

    strict = Search(library.rows, library.index, Strict())
    with pytest.raises(TextTooLong, match="has 300 tokens, the model takes 256") as refusal:
        strict.asymmetric(NAME, "query", truncate=False)
    assert refusal.value.where == ("query",)


def test_a_document_deleted_between_index_and_rows_leaves_no_gap(library: Library) -> None:
    """The index answers once, then the best document is deleted before its row is read."""
    library.put(TEXTS)

    class Racing:
        n_calls = 0

        def nearest(
            self,
            collection: Collection,
            view: View,
            query: NDArray[np.float32],
            *,
            depth: int,
            documents: Keys | None,
        ) -> Candidates:
            found = library.index.nearest(collection, view, query, depth=depth, documents=documents)
            self.n_calls += 1
            if self.n_calls == 1:
                library.delete("bridge")
            return found

    racing = Racing()
    raced = Search(library.rows, racing, library.embedder)  # type: ignore[arg-type]
    assert ids(raced.asymmetric(NAME, "bridge river", top_k=2, mode="dense")) == ["river", "castle"]
    assert racing.n_calls == 2


def test_a_document_replaced_while_a_filter_is_applied_is_found_all_the_same(library: Library) -> None:
    """Its new revision has another key, which the filter had not let through."""
    library.put(TEXTS, metadata={"kept": True})

    class Racing:
        n_calls = 0

        def nearest(
            self,
            collection: Collection,
            view: View,
            query: NDArray[np.float32],
            *,
            depth: int,
            documents: Keys | None,
        ) -> Candidates:
            self.n_calls += 1
            if self.n_calls == 1:
                library.put({"bridge": TEXTS["bridge"] + " Again."}, metadata={"kept": True})
            return library.index.nearest(collection, view, query, depth=depth, documents=documents)

    raced = Search(library.rows, Racing(), library.embedder)  # type: ignore[arg-type]
    kept = parse_filter({"field": "kept", "eq": True})
    hits = ids(raced.asymmetric(NAME, "bridge river", top_k=2, mode="dense", condition=kept))
    assert hits == ["bridge", "river"]


def test_a_document_under_a_filter_is_found_like_the_others_without_being_its_own_hit(
    library: Library,
) -> None:
    library.put(TEXTS, metadata={"kept": True})
    library.put({"bridge": TEXTS["bridge"]}, metadata={"kept": False})
    kept = parse_filter({"field": "kept", "eq": True})
    for document_id in ("bridge", "river"):
        found = ids(library.search.symmetric(NAME, document_id=document_id, condition=kept))
        assert sorted(found) == sorted(set(TEXTS) - {"bridge", document_id})


def test_a_result_tells_tokens_generation_and_time_per_stage(library: Library) -> None:
    library.put(TEXTS)
    result = library.search.asymmetric(NAME, "bridge crosses")
    assert (result.n_query_tokens, result.max_query_tokens, result.query_truncated) == (4, 256, False)
    assert list(result.timings_ms) == ["encode", "retrieve", "fetch", "total"]
    assert all(ms >= 0 for ms in result.timings_ms.values())


def random_texts(n: int) -> dict[str, str]:
    chance = random.Random(7)
    return {str(i): " ".join(chance.choices(WORDS, k=8)) + f" {i}." for i in range(n)}
