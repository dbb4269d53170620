"""What every index does under a filter. A part of `index_contract.IndexContract`."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Collection, View
from app.storage.index import Index
from app.storage.rows import Keys, Rows
from tests.storage.building import encoded, make_collection, write
from tests.storage.exhaustive import assert_is_top, exhaustive, unit_query

VIEWS: Sequence[View] = ("passages", "documents")
QUERY = unit_query(0)
SHARES = [0, 0.0001, 0.001, 0.01, 0.1, 0.5, 0.9999, 1]
N_MANY = 10_000

depths = st.integers(1, 50)


def ascending(keys: set[int]) -> Keys:
    return np.array(sorted(keys), np.int64)


class IndexFiltersContract:
    @pytest.fixture(params=["tail", "base"])
    def changed(
        self, index: Index, rows: Rows, filled: Collection, request: pytest.FixtureRequest
    ) -> Collection:
        """With documents in the base, in the tail, and dead ones; or all in the tail."""
        if request.param == "base":
            index.maintain(filled)
        write(rows, filled, encoded("new", "a new text"), encoded("d3", "another text"), "d7")
        index.apply(filled)
        return filled

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(allowed=st.sets(st.integers(1, 30)), depth=depths)
    def test_the_ranking_under_a_filter_is_that_of_the_documents_it_lets_through(
        self, index: Index, rows: Rows, changed: Collection, allowed: set[int], depth: int
    ) -> None:
        """Some of the keys that are let through are dead, some never were."""
        for view in VIEWS:
            found = index.nearest(changed, view, QUERY, depth=depth, documents=ascending(allowed))
            assert_is_top(found, exhaustive(rows, changed, view, QUERY, allowed=allowed), depth)

    @pytest.mark.parametrize("view", VIEWS)
    def test_a_filter_that_lets_nothing_through_leaves_nothing(
        self, index: Index, filled: Collection, view: View
    ) -> None:
        for _ in range(2):
            found = index.nearest(filled, view, QUERY, depth=10, documents=ascending(set()))
            assert (found.keys.size, found.document_keys.size, found.scores.size) == (0, 0, 0)
            index.maintain(filled)

    def test_a_filter_goes_on_being_right_while_the_collection_changes(
        self, index: Index, rows: Rows, filled: Collection
    ) -> None:
        """The same unwritable array each time, as the rows give it while its documents stay the same."""
        keys = [rows.document(filled.key, f"d{i}").key for i in range(10)]
        documents = ascending(set(keys))
        documents.flags.writeable = False
        for i in range(12):
            found = index.nearest(filled, "passages", QUERY, depth=100, documents=documents)
            assert_is_top(found, exhaustive(rows, filled, "passages", QUERY, allowed=keys), 100)
            write(rows, filled, encoded(f"new{i}", f"new text {i}"), f"d{i}")
            if i % 4 == 1:
                index.maintain(filled)
            index.apply(filled)

    def test_exactly_as_many_as_match_come_back_whatever_the_share(self, index: Index, rows: Rows) -> None:
        many = make_collection(rows, "many")
        texts = [f"common word{i % 50} {i}" for i in range(N_MANY)]
        write(rows, many, *(encoded(f"d{i}", text, n_passages=1) for i, text in enumerate(texts)))
        index.apply(many)
        index.maintain(many)
        (first, *_) = [block.keys for block in rows.vectors_after(many.key, "documents", 0, block=N_MANY)]
        shuffled = np.random.default_rng(0).permutation(first)
        for share in SHARES:
            documents = np.sort(shuffled[: round(share * N_MANY)])
            for depth in (10, 300):
                found = index.nearest(many, "passages", QUERY, depth=depth, documents=documents)
                truth = exhaustive(rows, many, "passages", QUERY, allowed=set(documents.tolist()))
                assert_is_top(found, truth, depth)
                by_words = index.matching(many, "common", depth=depth, documents=documents)
                assert len(by_words.keys) == min(depth, len(documents))
                assert set(by_words.document_keys.tolist()) <= set(documents.tolist())

    def test_words_under_a_filter_keep_their_order_and_scores(
        self, words: Index, rows: Rows, zoo: Collection
    ) -> None:
        whole = words.matching(zoo, "cat dog", depth=10)
        for left_out in [*range(len(whole.keys)), None]:
            kept = np.arange(len(whole.keys)) != left_out
            documents = np.sort(whole.document_keys[kept])
            found = words.matching(zoo, "cat dog", depth=10, documents=documents)
            assert found.keys.tolist() == whole.keys[kept].tolist()
            np.testing.assert_allclose(found.scores, whole.scores[kept], rtol=1e-6)

    def test_words_under_a_filter_that_lets_no_live_document_through_match_nothing(
        self, words: Index, rows: Rows, zoo: Collection
    ) -> None:
        dead = rows.document(zoo.key, "dog").key
        write(rows, zoo, "dog")
        words.apply(zoo)
        for documents in (set(), {dead}, {10**12}):
            assert words.matching(zoo, "dog", depth=10, documents=ascending(documents)).keys.size == 0
