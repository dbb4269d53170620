"""What every implementation of `app.storage.index.Index` does. Inherit, and provide `rows` and `open_index`.

`open_index` gives a new handle on the same index each time, as another process would have. Its settings make
`maintain` worthwhile as soon as a tenth has changed.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Collection, View
from app.storage.index import Index
from app.storage.rows import Rows
from tests.storage.building import encoded, make_collection, write
from tests.storage.exhaustive import TOLERANCE, assert_is_top, exhaustive, unit_query
from tests.storage.index_filters_contract import IndexFiltersContract
from tests.storage.index_words_contract import WordsContract

OpenIndex = Callable[[], Index]

VIEWS: Sequence[View] = ("passages", "documents")
QUERY = unit_query(0)

operations = st.lists(
    st.tuples(st.just("write"), st.lists(st.integers(0, 9), min_size=1, max_size=6))
    | st.tuples(st.just("delete"), st.lists(st.integers(0, 9), min_size=1, max_size=6))
    | st.tuples(st.just("maintain"), st.just([]))
    | st.tuples(st.just("search"), st.lists(st.integers(1, 30), min_size=1, max_size=1)),
    max_size=14,
)


class IndexContract(WordsContract, IndexFiltersContract):
    """Real rows, made vectors."""

    @pytest.fixture
    def index(self, open_index: OpenIndex) -> Index:
        return open_index()

    @pytest.fixture
    def books(self, rows: Rows) -> Collection:
        return make_collection(rows)

    @pytest.fixture
    def filled(self, rows: Rows, books: Collection) -> Collection:
        """20 documents of 2 passages."""
        write(rows, books, *(encoded(f"d{i}", f"text number {i}") for i in range(20)))
        return books

    @pytest.mark.parametrize("view", VIEWS)
    def test_an_empty_collection_has_nothing_near(self, index: Index, books: Collection, view: View) -> None:
        found = index.nearest(books, view, QUERY, depth=10)
        assert (found.keys.size, found.document_keys.size, found.scores.size) == (0, 0, 0)

    @pytest.mark.parametrize("view", VIEWS)
    def test_the_ranking_is_that_of_exhaustive_search(
        self, index: Index, rows: Rows, filled: Collection, view: View
    ) -> None:
        for seed in range(5):
            query = unit_query(seed)
            found = index.nearest(filled, view, query, depth=7)
            assert_is_top(found, exhaustive(rows, filled, view, query), 7)
            assert found.is_exact

    @pytest.mark.parametrize("view", VIEWS)
    def test_the_ranking_stays_when_a_base_is_published(
        self, index: Index, rows: Rows, filled: Collection, view: View
    ) -> None:
        before = index.nearest(filled, view, QUERY, depth=9)
        assert index.maintain(filled)
        after = index.nearest(filled, view, QUERY, depth=9)
        np.testing.assert_array_equal(after.keys, before.keys)
        np.testing.assert_allclose(after.scores, before.scores, atol=TOLERANCE)
        assert after.generation > before.generation

    @pytest.mark.parametrize("depth", [39, 40, 41, 1000])
    def test_a_depth_beyond_the_collection_gives_all_of_it(
        self, index: Index, rows: Rows, filled: Collection, depth: int
    ) -> None:
        assert_is_top(
            index.nearest(filled, "passages", QUERY, depth=depth),
            exhaustive(rows, filled, "passages", QUERY),
            depth,
        )

    @pytest.mark.parametrize("view", VIEWS)
    def test_a_new_document_is_found_by_the_next_search_of_every_handle(
        self, index: Index, open_index: OpenIndex, rows: Rows, filled: Collection, view: View
    ) -> None:
        other = open_index()
        other.nearest(filled, view, QUERY, depth=5)
        write(rows, filled, encoded("new", "a text that was not there"))
        index.apply(filled)
        truth = exhaustive(rows, filled, view, QUERY)
        for handle in (index, other):
            assert_is_top(handle.nearest(filled, view, QUERY, depth=100), truth, 100)

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("has_base", [False, True])
    def test_deleted_documents_are_replaced_by_the_next_best(
        self, index: Index, rows: Rows, filled: Collection, view: View, has_base: bool
    ) -> None:
        if has_base:
            index.maintain(filled)
        best = index.nearest(filled, view, QUERY, depth=5).document_keys.tolist()
        ids = [stored.id for stored in rows.documents_by_key(best).values()]
        write(rows, filled, *ids)
        index.apply(filled)
        found = index.nearest(filled, view, QUERY, depth=8)
        assert not set(found.document_keys) & set(best)
        assert_is_top(found, exhaustive(rows, filled, view, QUERY), 8)

    def test_after_many_deletes_exactly_what_is_left_comes_back(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        index.maintain(filled)
        write(rows, filled, *(f"d{i}" for i in range(19)))
        index.apply(filled)
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 2

    def test_deleting_everything_leaves_nothing(self, index: Index, rows: Rows, filled: Collection) -> None:
        index.maintain(filled)
        write(rows, filled, *(f"d{i}" for i in range(20)))
        index.apply(filled)
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 0
        index.maintain(filled)
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 0

    @pytest.mark.parametrize("has_base", [False, True])
    def test_an_updated_document_is_found_by_its_new_vectors_only(
        self, index: Index, rows: Rows, filled: Collection, has_base: bool
    ) -> None:
        if has_base:
            index.maintain(filled)
        old_key = rows.document(filled.key, "d3").key
        write(rows, filled, encoded("d3", "another text under the same id", n_passages=3))
        index.apply(filled)
        found = index.nearest(filled, "passages", QUERY, depth=100)
        assert old_key not in found.document_keys
        assert_is_top(found, exhaustive(rows, filled, "passages", QUERY), 100)

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("has_base", [False, True])
    def test_equal_vectors_are_ranked_by_key(
        self, index: Index, rows: Rows, books: Collection, view: View, has_base: bool
    ) -> None:
        """More of them than the depth, around others, half of them in the base and half in the tail."""
        write(rows, books, *(encoded(f"a{i}", "the same text") for i in range(60)))
        write(rows, books, *(encoded(f"b{i}", f"text number {i}") for i in range(60)))
        if has_base:
            index.maintain(books)
        write(rows, books, *(encoded(f"c{i}", "the same text") for i in range(60)))
        index.apply(books)
        for seed in range(8):
            query = unit_query(seed)
            truth = exhaustive(rows, books, view, query)
            for depth in (1, 10, 61, 130):
                assert_is_top(index.nearest(books, view, query, depth=depth), truth, depth)

    def test_a_repeated_query_gives_the_same_order(self, index: Index, filled: Collection) -> None:
        first, second = (index.nearest(filled, "passages", QUERY, depth=40) for _ in range(2))
        np.testing.assert_array_equal(first.keys, second.keys)
        np.testing.assert_array_equal(first.scores, second.scores)

    @pytest.mark.parametrize("has_base", [False, True])
    def test_cosines_stay_within_one_although_vectors_are_rounded(
        self, index: Index, rows: Rows, filled: Collection, has_base: bool
    ) -> None:
        """A rounded vector times itself may exceed 1; times its opposite, -1."""
        if has_base:
            index.maintain(filled)
        (block,) = rows.vectors_after(filled.key, "passages", 0)
        for vector in block.vectors.astype(np.float32):
            for query in (1.01 * vector, -1.01 * vector):
                found = index.nearest(filled, "passages", query, depth=40).scores
                again = index.similarities(filled, "passages", query, block.keys.tolist())
                assert np.abs([found, again]).max() <= 1

    @pytest.mark.parametrize("has_base", [False, True])
    def test_similarities_come_in_the_order_of_the_keys(
        self, index: Index, rows: Rows, filled: Collection, has_base: bool
    ) -> None:
        if has_base:
            index.maintain(filled)
        write(rows, filled, encoded("new", "a text that was not there"))
        index.apply(filled)
        truth = exhaustive(rows, filled, "passages", QUERY)
        order = np.random.default_rng(0).permutation(len(truth.keys))
        found = index.similarities(filled, "passages", QUERY, truth.keys[order].tolist())
        np.testing.assert_allclose(found, truth.scores[order], atol=TOLERANCE)

    @pytest.mark.parametrize("has_base", [False, True])
    def test_similarity_of_a_key_that_is_not_live_is_nan(
        self, index: Index, rows: Rows, filled: Collection, has_base: bool
    ) -> None:
        if has_base:
            index.maintain(filled)
        films = make_collection(rows, "films")
        write(rows, films, encoded("f", "a film"))
        dead = rows.document(filled.key, "d0").key
        live = rows.document(filled.key, "d1").key
        foreign = rows.document(films.key, "f").key
        write(rows, filled, "d0")
        index.apply(filled)
        found = index.similarities(filled, "documents", QUERY, [dead, live, foreign, 10**12, -1])
        assert np.isnan(found).tolist() == [True, False, True, True, True]

    def test_no_keys_have_no_similarities(self, index: Index, books: Collection, filled: Collection) -> None:
        assert index.similarities(filled, "passages", QUERY, []).shape == (0,)

    def test_collections_do_not_see_each_other(self, index: Index, rows: Rows, filled: Collection) -> None:
        films = make_collection(rows, "films")
        write(rows, films, *(encoded(f"f{i}", f"film number {i}") for i in range(5)))
        for _ in range(2):
            for collection in (filled, films):
                truth = exhaustive(rows, collection, "passages", QUERY)
                assert_is_top(index.nearest(collection, "passages", QUERY, depth=100), truth, 100)
                index.maintain(collection)

    def test_a_second_maintenance_finds_nothing_to_do(self, index: Index, filled: Collection) -> None:
        assert [index.maintain(filled), index.maintain(filled)] == [True, False]

    def test_an_empty_collection_needs_no_maintenance(self, index: Index, books: Collection) -> None:
        assert not index.maintain(books)

    def test_maintenance_tells_its_stages_and_how_far_they_are(
        self, index: Index, filled: Collection
    ) -> None:
        reported: list[tuple[str, float]] = []
        index.maintain(filled, progress=lambda stage, share: reported.append((stage, share)))
        assert reported
        assert all(stage and 0 <= share <= 1 for stage, share in reported)

    @pytest.mark.parametrize("view", VIEWS)
    def test_what_changes_while_a_base_is_built_is_not_lost(
        self, index: Index, open_index: OpenIndex, rows: Rows, filled: Collection, view: View
    ) -> None:
        changed: list[int] = []

        def change(stage: str, share: float) -> None:
            i = len(changed)
            changed.append(i)
            write(rows, filled, encoded(f"new{i}", f"written meanwhile {i}"), f"d{i}")

        assert index.maintain(filled, progress=change)
        assert changed
        truth = exhaustive(rows, filled, view, QUERY)
        for handle in (index, open_index()):
            assert_is_top(handle.nearest(filled, view, QUERY, depth=100), truth, 100)

    def test_interrupted_maintenance_changes_no_answer_and_can_be_done_again(
        self, index: Index, open_index: OpenIndex, rows: Rows, filled: Collection
    ) -> None:
        def interrupt(stage: str, share: float) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            index.maintain(filled, progress=interrupt)
        truth = exhaustive(rows, filled, "passages", QUERY)
        for handle in (index, open_index()):
            assert_is_top(handle.nearest(filled, "passages", QUERY, depth=9), truth, 9)
        assert index.maintain(filled)

    def test_statistics_count_base_and_tail(self, index: Index, rows: Rows, filled: Collection) -> None:
        before = index.stats(filled, "passages")
        assert (before.n_base + before.n_tail - before.n_deleted, before.generation) == (40, 0)
        index.maintain(filled)
        write(rows, filled, encoded("new", "a text that was not there"), "d0")
        index.apply(filled)
        after = index.stats(filled, "passages")
        assert after.n_base + after.n_tail - after.n_deleted == 40
        assert after.generation > 0
        assert after.size_bytes > 0

    def test_a_dropped_collection_has_nothing_near(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        index.maintain(filled)
        rows.drop_collection(filled.name)
        index.drop(filled.key)
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 0

    def test_a_collection_dropped_while_a_base_is_built_gets_none(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        def drop(stage: str, share: float) -> None:
            if any(collection.key == filled.key for collection in rows.collections()):
                rows.drop_collection(filled.name)

        assert not index.maintain(filled, progress=drop)

    def test_dropping_twice_or_what_never_was_does_nothing(self, index: Index, filled: Collection) -> None:
        index.drop(filled.key)
        index.drop(filled.key)
        index.drop(10**9)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=operations)
    def test_any_history_gives_what_exhaustive_search_gives(
        self, open_index: OpenIndex, rows: Rows, steps: list[tuple[str, list[int]]]
    ) -> None:
        """Two handles: one writes, the other only searches. Every text is one of 13: equal vectors abound."""
        collection = make_collection(rows, f"history {len(rows.collections())}")
        writer, reader = open_index(), open_index()
        n_written = 0
        for step, numbers in [*steps, ("search", [100])]:
            if step == "write":
                texts = [f"text {(n_written + i) % 13}" for i in range(len(numbers))]
                n_written += len(numbers)
                write(rows, collection, *(encoded(f"d{i}", t) for i, t in zip(numbers, texts, strict=True)))
            elif step == "delete":
                write(rows, collection, *(f"d{number}" for number in numbers))
            elif step == "maintain":
                writer.maintain(collection)
            else:
                self._compare(rows, collection, [writer, reader], depth=numbers[0])
            writer.apply(collection)

    @staticmethod
    def _compare(rows: Rows, collection: Collection, handles: Sequence[Index], *, depth: int) -> None:
        for view in VIEWS:
            truth = exhaustive(rows, collection, view, QUERY)
            for handle in handles:
                assert_is_top(handle.nearest(collection, view, QUERY, depth=depth), truth, depth)
                found = handle.similarities(collection, view, QUERY, truth.keys.tolist())
                np.testing.assert_allclose(found, truth.scores.clip(-1, 1), atol=TOLERANCE)

    def test_searches_beside_a_writer_return_nothing_that_was_dead_before_they_began(
        self, open_index: OpenIndex, rows: Rows, filled: Collection
    ) -> None:
        """Document `stays` is always there; the writer deletes the others and maintains."""
        write(rows, filled, encoded("stays", "this one stays"))
        stays = rows.document(filled.key, "stays").key
        dead: set[int] = set()
        is_over = Event()
        searcher, writer = open_index(), open_index()

        def search() -> int:
            n_searches = 0
            while not is_over.is_set() or n_searches == 0:
                dead_before = set(dead)
                found = searcher.nearest(filled, "passages", unit_query(n_searches), depth=100)
                assert not dead_before & set(found.document_keys.tolist())
                assert stays in found.document_keys
                n_searches += 1
            return n_searches

        with ThreadPoolExecutor(4) as threads:
            searches = [threads.submit(search) for _ in range(4)]
            try:
                for i in range(20):
                    write(rows, filled, encoded(f"new{i}", f"new text {i}"))
                    key = rows.document(filled.key, f"d{i}").key
                    write(rows, filled, f"d{i}")
                    writer.apply(filled)
                    dead.add(key)
                    if i % 5 == 0:
                        writer.maintain(filled)
            finally:
                is_over.set()
            assert all(search.result() > 0 for search in searches)
        self._compare(rows, filled, [searcher, writer], depth=100)

    def test_a_sweep_removes_what_a_crash_left_of_a_dropped_collection(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        index.maintain(filled)
        rows.drop_collection(filled.name)
        while filled.key not in rows.purge_dropped():
            pass  # and the process dies before it drops the files
        assert index.sweep() == [filled.key]
        assert index.sweep() == []
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 0

    def test_a_sweep_leaves_live_collections_alone(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        index.maintain(filled)
        generation = index.stats(filled, "passages").generation
        assert index.sweep() == []
        assert index.nearest(filled, "passages", QUERY, depth=10).keys.size == 10
        assert index.stats(filled, "passages").generation == generation
