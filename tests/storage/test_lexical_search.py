from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.storage.lexical.committed import Allowed, contains
from app.storage.lexical.reader import MAX_QUERY_TERMS
from app.storage.lexical.writer import COMMIT_AFTER
from tests.storage.lexical_building import Library, open_library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = open_library(tmp_path)
    yield library
    library.writer.close()
    library.rows.close()


@pytest.fixture(params=["in memory", "in the files", "in both"])
def animals(library: Library, request: pytest.FixtureRequest) -> Library:
    """Three documents: before a commit, after it, and with one of them on each side and one replaced."""
    texts = {"a": "the cat sat", "b": "a dog and a dog", "c": "one cat and one dog of many others"}
    if request.param == "in both":
        library.put({"b": texts["b"], "c": "an elephant"})
        library.writer.commit()
    library.put({id_: text for id_, text in texts.items() if request.param != "in both" or id_ != "b"})
    if request.param == "in the files":
        library.writer.commit()
    return library


def test_passages_come_best_first(animals: Library) -> None:
    assert animals.find("dog") == ["b", "c"]
    assert animals.find("a cat") == ["a", "c"]


def test_scores_descend(animals: Library) -> None:
    scores = animals.reader.match("cat dog", depth=10).scores
    assert len(scores) == 3
    assert (np.diff(scores) <= 0).all()


def test_depth_cuts_the_same_ranking(animals: Library) -> None:
    whole = animals.reader.match("cat dog", depth=10)
    for depth in range(4):
        cut = animals.reader.match("cat dog", depth=depth)
        assert cut.keys.tolist() == whole.keys[:depth].tolist()
        assert cut.scores.tolist() == whole.scores[:depth].tolist()


def test_what_a_document_said_before_is_not_found(animals: Library) -> None:
    assert animals.find("elephant") == []


def test_a_deleted_document_is_not_found(animals: Library) -> None:
    animals.delete("b")
    assert animals.find("dog") == ["c"]
    animals.writer.apply()
    assert animals.find("dog") == ["c"]
    animals.writer.commit()
    assert animals.find("dog") == ["c"]


def test_a_document_that_came_back_is_found_once(animals: Library) -> None:
    animals.delete("b")
    animals.put({"b": "a dog and a dog"})
    assert animals.find("dog") == ["b", "c"]


def test_only_allowed_passages_are_found(animals: Library) -> None:
    assert animals.find("cat dog", allowed=Allowed.passages(animals.keys("c", "a"))) == ["c", "a"]
    assert animals.find("cat dog", allowed=Allowed.passages(np.empty(0, np.int64))) == []
    assert animals.find("cat dog", allowed=Allowed.passages(np.array([10**12]))) == []


def test_scores_of_given_passages_are_those_of_the_whole_ranking(animals: Library) -> None:
    whole = animals.reader.match("cat dog", depth=10)
    score_of = dict(zip(whole.keys.tolist(), whole.scores.tolist(), strict=True))
    for key in animals.keys().tolist():
        (score,) = animals.reader.match("cat dog", depth=1, allowed=Allowed.passages(np.array([key]))).scores
        assert score == pytest.approx(score_of[key])


@pytest.mark.parametrize("query", ["", " ", "?!", "🎉", "the of and", "zebra", "*", "\x00", '"', "\ud800"])
def test_a_query_of_nothing_known_finds_nothing(animals: Library, query: str) -> None:
    animals.delete("a", "b", "c")
    found = animals.reader.match(query, depth=10)
    assert (found.keys.tolist(), found.document_keys.tolist(), found.scores.tolist()) == ([], [], [])


@pytest.mark.parametrize("query", ["c++", "AND", '"unbalanced', "title:x", "a:b", "-it", "(NOT", "word~2^3"])
def test_a_query_that_looks_like_a_language_is_words(library: Library, query: str) -> None:
    library.put({"it": f"before {query} after", "other": "nothing of this"})
    library.writer.commit()
    assert library.find(query) == ["it"]


def test_an_empty_collection_has_no_match(library: Library) -> None:
    assert library.find("cat") == []
    library.writer.commit()
    assert library.find("cat") == []


def test_title_words_find_a_document_and_count_more(library: Library) -> None:
    library.put({"in title": "a long story of something"}, title="Cat")
    library.put({"in text": "a cat story of something"}, title="Long")
    library.writer.commit()
    assert library.find("cat") == ["in title", "in text"]


def test_ties_are_broken_by_key_across_commits(library: Library) -> None:
    for n in range(3):
        library.put({f"{n}-{i:02}": "same words" for i in range(20)})
        library.writer.commit()
    expected = [f"{n}-{i:02}" for n in range(3) for i in range(20)]
    for depth in (1, 7, 30, 59, 60, 100):
        assert library.find("words", depth=depth) == expected[:depth]
    assert library.find("words", depth=7, allowed=Allowed.passages(library.keys()[::2])) == expected[:14:2]


def test_a_very_long_query_is_answered_by_its_most_telling_words(library: Library) -> None:
    common = [f"common{i}" for i in range(MAX_QUERY_TERMS + 20)]
    library.put({f"d{i}": " ".join(common) for i in range(5)} | {"rare": "axolotl " + " ".join(common)})
    library.writer.commit()
    assert library.find(" ".join([*common, "axolotl"]), depth=1) == ["rare"]
    assert library.find("axolotl " + "word " * 10_000, depth=1) == ["rare"]


def test_what_exceeds_the_commit_threshold_goes_into_the_files(library: Library) -> None:
    library.put({f"d{i}": f"word w{i}" for i in range(COMMIT_AFTER)})
    library.writer.apply()
    assert library.another_reader()._current().tail == ()
    assert len(library.find("word", depth=2 * COMMIT_AFTER)) == COMMIT_AFTER


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """4,000 passages in several commits with a tail, and a tenth deleted."""
    library = open_library(tmp_path_factory.mktemp("large"))
    generator = np.random.default_rng(5)
    for part in range(4):
        texts = [" ".join(f"w{w}" for w in generator.zipf(1.3, 30) % 500) for _ in range(1000)]
        library.put({f"{part}-{i}": text for i, text in enumerate(texts)})
        if part < 3:
            library.writer.commit()
    library.delete(*(f"{part}-{i}" for part in range(4) for i in range(0, 1000, 10)))
    yield library
    library.writer.close()
    library.rows.close()


@pytest.mark.parametrize("n_allowed", [1, 10, 90, 101, 360, 1000, 3000, 3600])
@pytest.mark.parametrize("query", ["w1 w2 w3", "w77 w401", "w250"])
@pytest.mark.parametrize("depth", [1, 10, 300, 5000])
def test_a_filter_returns_the_best_of_the_allowed_at_any_selectivity(
    large: Library, n_allowed: int, query: str, depth: int
) -> None:
    whole = large.reader.match(query, depth=10_000)
    allowed = np.sort(np.random.default_rng(n_allowed).choice(large.keys(), n_allowed, replace=False))
    expected = whole.keys[contains(allowed, whole.keys)][:depth]
    found = large.reader.match(query, depth=depth, allowed=Allowed.passages(allowed))
    assert found.keys.tolist() == expected.tolist()


@pytest.mark.parametrize("n_allowed", [1, 101, 2000])
def test_a_filter_may_name_documents(large: Library, n_allowed: int) -> None:
    whole = large.reader.match("w1 w2 w3", depth=10_000)
    allowed = np.sort(np.random.default_rng(n_allowed).choice(whole.document_keys, n_allowed, replace=False))
    expected = whole.keys[contains(allowed, whole.document_keys)][:50]
    found = large.reader.match("w1 w2 w3", depth=50, allowed=Allowed.documents(allowed))
    assert found.keys.tolist() == expected.tolist()


def test_a_filter_that_allows_only_the_worst_matches_returns_them(large: Library) -> None:
    whole = large.reader.match("w1 w2 w3 w4", depth=10_000)
    worst = np.sort(whole.keys[-150:])
    found = large.reader.match("w1 w2 w3 w4", depth=100, allowed=Allowed.passages(worst))
    assert found.keys.tolist() == whole.keys[-150:-50].tolist()


def test_after_many_deletes_every_live_match_is_returned(large: Library) -> None:
    n_live = len(large.keys())
    everything = " ".join(f"w{i}" for i in range(60))
    found = large.reader.match(everything, depth=10_000)
    assert n_live == 3600
    assert len(set(found.keys.tolist())) == len(found.keys) <= n_live
    assert contains(large.keys(), found.keys).all()
    assert len(large.reader.match(everything, depth=500).keys) == 500


@given(st.text())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_query_is_answered(large: Library, query: str) -> None:
    assert len(large.reader.match(query, depth=5).keys) <= 5


@given(st.dictionaries(st.text("abc/. é", min_size=1), st.text("ab cd éß-_'東京. ", min_size=1), max_size=6))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_documents_are_found_by_each_of_their_words(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]
) -> None:
    library = open_library(tmp_path_factory.mktemp("words"))
    library.put(texts)
    library.writer.commit()
    for document_id, text in texts.items():
        for word in text.split():
            if any(character.isalnum() for character in word):
                assert document_id in library.find(word)
    library.writer.close()
    library.rows.close()


steps = st.lists(
    st.tuples(st.just("put"), st.integers(0, 5), st.sets(st.sampled_from("uvwxyz"), min_size=1))
    | st.tuples(st.just("delete"), st.integers(0, 5), st.just(set[str]()))
    | st.tuples(st.sampled_from(["apply", "commit", "restart"]), st.just(0), st.just(set[str]())),
    max_size=12,
)


@given(steps)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_gives_what_the_texts_say(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, set[str]]]
) -> None:
    library = open_library(tmp_path_factory.mktemp("history"))
    words_of: dict[str, set[str]] = {}
    for step, number, words in history:
        document_id = f"d{number}"
        if step == "put":
            words_of[document_id] = words
            library.put({document_id: " ".join(sorted(words))})
        elif step == "delete":
            words_of.pop(document_id, None)
            library.delete(document_id)
        elif step == "restart":
            library.another_writer()
        else:
            getattr(library.writer, step)()
        for word in "uz":
            expected = {document_id for document_id, words in words_of.items() if word in words}
            for reader in (library.reader, library.another_reader()):
                assert sorted(library.find(word, reader=reader)) == sorted(expected)
    library.writer.close()
    library.rows.close()
