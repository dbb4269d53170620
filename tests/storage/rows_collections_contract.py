"""What the rows promise of collections."""

import dataclasses
from collections.abc import Callable

import pytest

from app.domain import (
    Collection,
    CollectionSettings,
    CollectionStats,
    Fusion,
    IndexSettings,
    SearchSettings,
    SplitterSettings,
)
from app.errors import (
    CollectionExists,
    CollectionNotFound,
    DocumentNotFound,
    JobNotFound,
)
from app.storage.rows import Rows
from tests.storage.building import encoded, make_collection, write

OpenRows = Callable[[], Rows]


class CollectionsContract:
    def test_creating_a_collection_twice_returns_the_first(self, rows: Rows) -> None:
        first, was_created = rows.create_collection("a", CollectionSettings(), fingerprint="f", model="m")
        second, was_created_again = rows.create_collection(
            "a", CollectionSettings(), fingerprint="f", model="m"
        )
        assert (was_created, was_created_again) == (True, False)
        assert first == second == rows.collection("a")

    def test_a_collection_keeps_its_settings(self, rows: Rows, open_rows: OpenRows) -> None:
        splitter = SplitterSettings(max_tokens=100, overlap_tokens=7, version=3)
        wanted = CollectionSettings(splitter, IndexSettings(exact_limit=0))
        rows.create_collection("a", wanted, fingerprint="f", model="m")
        stored = open_rows().collection("a")
        assert (stored.settings, stored.fingerprint, stored.model) == (wanted, "f", "m")

    def test_search_settings_are_replaced_and_nothing_else(self, rows: Rows, open_rows: OpenRows) -> None:
        made = make_collection(rows, "a")
        assert made.search == SearchSettings()
        wanted = SearchSettings(Fusion("rrf", 0.25, 50), candidates=30)
        changed = rows.set_search_settings("a", wanted)
        assert changed == dataclasses.replace(made, search=wanted) == open_rows().collection("a")
        assert rows.set_search_settings("a", SearchSettings()) == made

    def test_a_collection_can_be_created_again_after_its_search_settings_changed(self, rows: Rows) -> None:
        made = make_collection(rows, "a")
        changed = rows.set_search_settings("a", SearchSettings(candidates=5))
        assert make_collection(rows, "a") == changed != made

    def test_search_settings_of_an_unknown_collection_are_not_found(self, rows: Rows) -> None:
        with pytest.raises(CollectionNotFound, match="nowhere"):
            rows.set_search_settings("nowhere", SearchSettings())

    def test_other_settings_for_a_taken_name_are_refused(self, rows: Rows) -> None:
        make_collection(rows, "a")
        other = CollectionSettings(SplitterSettings(max_tokens=10))
        with pytest.raises(CollectionExists, match=r"max_tokens=256.*max_tokens=10"):
            rows.create_collection("a", other, fingerprint="print", model="model")

    def test_another_fingerprint_for_a_taken_name_is_refused_naming_both(self, rows: Rows) -> None:
        make_collection(rows, "a")
        with pytest.raises(CollectionExists, match=r"model .print.*other .elsewhere"):
            rows.create_collection("a", CollectionSettings(), fingerprint="elsewhere", model="other")

    def test_collections_are_listed_by_name(self, rows: Rows) -> None:
        for name in ("b", "ä", "a", "B"):
            make_collection(rows, name)
        assert [c.name for c in rows.collections()] == ["B", "a", "b", "ä"]

    def test_an_unknown_collection_is_not_found(self, rows: Rows) -> None:
        with pytest.raises(CollectionNotFound, match="nowhere"):
            rows.collection("nowhere")
        with pytest.raises(CollectionNotFound, match="nowhere"):
            rows.drop_collection("nowhere")

    def test_a_dropped_collection_is_invisible_at_once(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        [job] = rows.jobs()
        rows.drop_collection(collection.name)
        assert rows.collections() == []
        assert rows.jobs() == []
        assert rows.documents(collection.key) == []
        assert rows.documents_by_key([1]) == {}
        assert rows.passages_by_key([1, 2]) == {}
        assert list(rows.vectors_after(collection.key, "passages", 0)) == []
        assert list(rows.texts_after(collection.key, 0)) == []
        assert len(rows.vectors_by_key("documents", [1]).keys) == 0
        assert rows.content_hashes(collection.key, ["a"]) == {}
        with pytest.raises(JobNotFound):
            rows.job(job.id)
        with pytest.raises(DocumentNotFound):
            rows.document(collection.key, "a")
        with pytest.raises(CollectionNotFound):
            rows.collection_stats(collection.key)

    def test_the_name_of_a_dropped_collection_can_be_used_again(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"))
        rows.drop_collection(collection.name)
        again = make_collection(rows, collection.name)
        assert again.key > collection.key
        assert rows.documents(again.key) == []

    def test_purging_goes_in_steps_and_names_what_is_wholly_gone(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, *[encoded(str(i)) for i in range(5)])
        rows.drop_collection(collection.name)
        steps = []
        while collection.key not in steps:
            steps += list(rows.purge_dropped(limit=2)) or [0]
        assert steps[:2] == [0, 0]
        assert rows.purge_dropped() == []

    def test_purging_leaves_other_collections_alone(self, rows: Rows, collection: Collection) -> None:
        other = make_collection(rows, "other")
        write(rows, collection, encoded("a"))
        write(rows, other, encoded("a"), encoded("b"))
        rows.drop_collection(collection.name)
        assert rows.purge_dropped() == [collection.key]
        assert [stored.id for stored in rows.documents(other.key)] == ["a", "b"]
        assert len(rows.jobs()) == 1

    def test_keys_are_not_reused_after_a_purge(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", n_passages=3))
        rows.drop_collection(collection.name)
        rows.purge_dropped()
        again = make_collection(rows)
        write(rows, again, encoded("a"))
        assert again.key > collection.key
        assert rows.document(again.key, "a").key == 2
        assert next(rows.vectors_after(again.key, "passages", 0)).keys.tolist() == [4, 5]

    def test_stats_count_what_is_live(self, rows: Rows, collection: Collection) -> None:
        """b: 3 passages of 10 tokens, a tenth unknown; "zwölf" is 6 bytes of UTF-8."""
        write(rows, collection, encoded("a", n_passages=9), encoded("b", n_passages=1))
        write(rows, collection, "a", encoded("b", "zwölf", n_passages=3, unknown_share=0.1))
        assert rows.collection_stats(collection.key) == CollectionStats(1, 3, 30, 0.1, 6)

    def test_stats_of_an_empty_collection_are_zero(self, rows: Rows, collection: Collection) -> None:
        assert rows.collection_stats(collection.key) == CollectionStats(0, 0, 0, 0.0, 0)
