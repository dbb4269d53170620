"""Part of `rows_contract`: other names of collections."""

import dataclasses
from collections.abc import Callable

import pytest

from app.domain import Collection, SearchSettings
from app.errors import AliasNotFound, CollectionInUse, CollectionNotFound, NameTaken
from app.storage.rows import Rows
from tests.storage.building import encoded, make_collection, write


class AliasesContract:
    def test_an_alias_stands_for_its_collection(
        self, rows: Rows, collection: Collection, open_rows: Callable[[], Rows]
    ) -> None:
        alias, was_created = rows.put_alias("current", collection.name)
        assert was_created
        assert (alias.name, alias.collection) == ("current", collection.name)
        assert open_rows().alias("current") == alias
        assert rows.collection("current") == collection

    def test_pointing_it_elsewhere_counts_from_the_next_call_on(
        self, rows: Rows, collection: Collection, open_rows: Callable[[], Rows]
    ) -> None:
        newer = make_collection(rows, "newer")
        first, _ = rows.put_alias("current", collection.name)
        moved, was_created = open_rows().put_alias("current", newer.name)
        assert not was_created
        assert rows.collection("current") == newer
        assert moved.created_at == first.created_at < moved.updated_at

    def test_pointing_it_at_the_same_collection_again_changes_nothing(
        self, rows: Rows, collection: Collection
    ) -> None:
        first, _ = rows.put_alias("current", collection.name)
        assert rows.put_alias("current", collection.name) == (first, False)

    def test_aliases_are_listed_by_name(self, rows: Rows, collection: Collection) -> None:
        for name in ("b", "a", "c"):
            rows.put_alias(name, collection.name)
        assert [each.name for each in rows.aliases()] == ["a", "b", "c"]
        assert {each.collection for each in rows.aliases()} == {collection.name}

    def test_a_dropped_alias_leads_nowhere_and_its_collection_stays(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"))
        rows.put_alias("current", collection.name)
        rows.drop_alias("current")
        assert rows.aliases() == []
        assert rows.collection_stats(collection.key).n_documents == 1
        with pytest.raises(CollectionNotFound, match="current"):
            rows.collection("current")

    def test_an_unknown_alias_is_not_found(self, rows: Rows, collection: Collection) -> None:
        for name in ("nowhere", collection.name):
            with pytest.raises(AliasNotFound, match=name):
                rows.alias(name)
            with pytest.raises(AliasNotFound, match=name):
                rows.drop_alias(name)

    def test_an_alias_leads_to_a_collection_that_exists(self, rows: Rows, collection: Collection) -> None:
        with pytest.raises(CollectionNotFound, match="nowhere"):
            rows.put_alias("current", "nowhere")
        rows.drop_collection(collection.name)
        with pytest.raises(CollectionNotFound, match=collection.name):
            rows.put_alias("current", collection.name)
        assert rows.aliases() == []

    def test_an_alias_of_an_alias_is_refused_naming_the_collection(
        self, rows: Rows, collection: Collection
    ) -> None:
        rows.put_alias("current", collection.name)
        for name in ("again", "current"):
            with pytest.raises(CollectionNotFound, match=collection.name):
                rows.put_alias(name, "current")

    def test_a_name_is_that_of_a_collection_or_of_an_alias(self, rows: Rows, collection: Collection) -> None:
        rows.put_alias("current", collection.name)
        with pytest.raises(NameTaken, match=collection.name):
            rows.put_alias(collection.name, collection.name)
        with pytest.raises(NameTaken, match=collection.name):
            make_collection(rows, "current")
        assert [each.name for each in rows.collections()] == [collection.name]

    def test_the_name_of_a_dropped_collection_can_become_an_alias(
        self, rows: Rows, collection: Collection
    ) -> None:
        newer = make_collection(rows, "newer")
        rows.drop_collection(collection.name)
        rows.put_alias(collection.name, "newer")
        assert rows.collection(collection.name) == newer
        rows.purge_dropped()
        assert rows.collection(collection.name) == newer

    def test_a_collection_is_not_dropped_through_an_alias(self, rows: Rows, collection: Collection) -> None:
        rows.put_alias("current", collection.name)
        with pytest.raises(NameTaken, match=collection.name):
            rows.drop_collection("current")

    def test_a_collection_with_aliases_is_not_dropped_before_they_are(
        self, rows: Rows, collection: Collection
    ) -> None:
        rows.put_alias("b", collection.name)
        rows.put_alias("a", collection.name)
        with pytest.raises(CollectionInUse, match="a, b"):
            rows.drop_collection(collection.name)
        rows.drop_alias("a")
        rows.drop_alias("b")
        rows.drop_collection(collection.name)
        assert rows.collections() == []

    def test_search_settings_may_be_set_through_an_alias(self, rows: Rows, collection: Collection) -> None:
        rows.put_alias("current", collection.name)
        wanted = SearchSettings(candidates=7)
        changed = rows.set_search_settings("current", wanted)
        assert changed == dataclasses.replace(collection, search=wanted) == rows.collection(collection.name)
