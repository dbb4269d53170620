"""Pages over real rows and a real index, while documents come and go."""

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Mode, SearchResult
from app.errors import RankingChanged
from app.services.paging import MAX_REACH, Place, page_behind
from tests.services.library import NAME, Library

WORDS = ["river", "mountain", "bridge", "castle", "market", "harbour", "forest", "garden"]
MODES: tuple[Mode, ...] = get_args(Mode)

Ranking = Callable[[int], SearchResult]


def random_texts(n: int) -> dict[str, str]:
    choose = random.Random(3)
    return {f"{i:04}": f"{' '.join(choose.choices(WORDS, k=choose.randint(1, 5)))}." for i in range(n)}


def searching(library: Library, mode: Mode = "hybrid") -> Ranking:
    return lambda top_k: library.search.asymmetric(NAME, "castle harbour", top_k=top_k, mode=mode)


def all_pages(search: Ranking, sizes: Sequence[int]) -> list[list[str]]:
    """Ids of all pages; the last size counts for all that follow."""
    pages: list[list[str]] = []
    place: Place | None = None
    while not pages or place is not None:
        page = page_behind(place, search, size=sizes[min(len(pages), len(sizes) - 1)])
        pages.append([hit.document_id for hit in page.result.hits])
        place = page.next_place
    return pages


def joined(pages: Sequence[Sequence[str]]) -> list[str]:
    return list(chain.from_iterable(pages))


def shown(result: SearchResult) -> list[str]:
    return [hit.document_id for hit in result.hits]


@pytest.mark.parametrize("mode", MODES)
def test_all_pages_together_are_the_ranking(library: Library, mode: Mode) -> None:
    library.put(random_texts(700))
    search = searching(library, mode)
    pages = all_pages(search, [7, 60, 250])
    assert joined(pages) == shown(search(1000))
    assert [len(page) for page in pages[:3]] == [7, 60, 250]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 40), st.lists(st.integers(1, 15), min_size=1, max_size=5))
def test_pages_of_equal_documents_have_each_of_them_once_by_id(
    library: Library, n_documents: int, sizes: Sequence[int]
) -> None:
    library.delete(*[f"{i:02}" for i in range(40)])
    library.put({f"{i:02}": "The same words." for i in range(n_documents)})
    pages = all_pages(lambda top_k: library.search.symmetric(NAME, text="words", top_k=top_k), sizes)
    assert joined(pages) == [f"{i:02}" for i in range(n_documents)]


def test_a_document_written_behind_what_was_shown_is_on_a_later_page(library: Library) -> None:
    library.put({"a": "castle harbour", "b": "castle", "c": "market"})
    search = searching(library, "dense")
    first = page_behind(None, search, size=1)
    library.put({"new": "castle market forest garden"})
    second = page_behind(first.next_place, search, size=3)
    assert shown(first.result) + shown(second.result) == shown(search(4))


@pytest.mark.parametrize("change", ["a better one", "one that was shown goes"])
def test_a_change_among_what_was_shown_is_refused(library: Library, change: str) -> None:
    library.put({"a": "castle harbour market", "b": "castle forest", "c": "garden", "d": "river"})
    search = searching(library)
    first = page_behind(None, search, size=2)
    if change == "a better one":
        library.put({"best": "castle harbour"})
    else:
        library.delete("a")
    with pytest.raises(RankingChanged, match="without a cursor"):
        page_behind(first.next_place, search, size=2)


def test_another_order_among_what_was_shown_does_no_harm(library: Library) -> None:
    library.put({"a": "castle harbour", "b": "castle market", "c": "garden", "d": "river"})
    search = searching(library)
    first = page_behind(None, search, size=2)
    library.put({"a": "castle market", "b": "castle harbour"})
    assert shown(search(2)) == ["b", "a"]
    assert shown(page_behind(first.next_place, search, size=2).result) == shown(search(4))[2:]


def test_what_a_deeper_look_finds_too_late_is_shown_once(library: Library) -> None:
    """As of an approximate index: from the third hit on, it also finds what belongs to the top."""
    library.put(dict.fromkeys("abcdef", "castle"))
    whole = library.search.asymmetric(NAME, "castle", top_k=6)
    late = whole.hits[0]

    def search(top_k: int) -> SearchResult:
        hits = whole.hits if top_k > 2 else whole.hits[1:]
        return SearchResult(
            hits=hits[:top_k],
            total=whole.total,
            is_exact=False,
            n_query_tokens=1,
            max_query_tokens=1,
            query_truncated=False,
            n_query_windows=1,
            generation=1,
            timings_ms={},
        )

    pages = all_pages(search, [2])
    assert pages == [["b", "c"], [late.document_id, "d"], ["e", "f"]]


def test_paging_ends_where_it_says(library: Library) -> None:
    library.put({"a": "castle", "b": "castle"})
    whole = library.search.asymmetric(NAME, "castle", top_k=2)
    asked = []

    def search(top_k: int) -> SearchResult:
        asked.append(top_k)
        return library.search.asymmetric(NAME, "castle", top_k=1)

    page_behind(Place.behind(whole.hits[:1]), search, size=MAX_REACH)
    assert asked == [MAX_REACH]


def test_the_total_counts_all_documents_that_are_let_through(library: Library) -> None:
    library.put(random_texts(500))
    for result in (
        library.search.asymmetric(NAME, "castle", top_k=1),
        library.search.asymmetric(NAME, "castle", top_k=1, mode="dense"),
        library.search.symmetric(NAME, text="castle", top_k=1),
    ):
        assert (result.total.n_documents, result.total.is_exact) == (500, True)
    assert library.search.symmetric(NAME, document_id="0001", top_k=1).total.n_documents == 499


def test_the_total_by_words_is_a_lower_bound_until_all_were_looked_at(library: Library) -> None:
    library.put(random_texts(900))
    n_matches = sum("castle" in text for text in random_texts(900).values())
    few = library.search.asymmetric(NAME, "castle", top_k=1, mode="lexical").total
    many = library.search.asymmetric(NAME, "castle", top_k=900, mode="lexical").total
    assert 1 <= few.n_documents <= n_matches
    assert not few.is_exact
    assert (many.n_documents, many.is_exact) == (n_matches, True)


def test_an_exact_index_says_that_it_is(library: Library) -> None:
    library.put({"a": "castle"})
    assert library.search.asymmetric(NAME, "castle").is_exact
    assert library.search.symmetric(NAME, text="castle").is_exact
