"""What every store does with filters and facets. A part of `rows_contract.RowsContract`."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Collection, Facet, FacetValue, Metadata, MetadataScalar, MetadataValue
from app.filters import Filter, Kind, matches, parse_filter, values_of
from app.storage.rows import MetadataUpdate, Rows
from tests.filters.made_filters import conditions, metadata
from tests.filters.truth_table import rows as table_rows
from tests.storage.building import encoded, make_collection, write

histories = st.lists(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | metadata), min_size=1, max_size=4), max_size=4
)
"""Per step: ids with their new metadata, or None where they are deleted."""

EN = parse_filter({"field": "lang", "eq": "en"})
NOT_EN = parse_filter({"not": {"field": "lang", "eq": "en"}})


def matching_ids(rows: Rows, collection: Collection, condition: Filter) -> Sequence[str]:
    keys = rows.matching_documents(collection.key, condition)
    assert keys.dtype == np.int64
    assert (np.diff(keys) > 0).all()
    stored = rows.documents_by_key(keys.tolist())
    assert len(stored) == len(keys)
    return sorted(each.id for each in stored.values())


class FiltersContract:
    def test_every_row_of_the_truth_table_holds(self, rows: Rows) -> None:
        """Each beside a document that only has other fields."""
        for i, row in enumerate(table_rows()):
            collection = make_collection(rows, f"row {i}")
            write(rows, collection, encoded("it", metadata=row.metadata), encoded("other", metadata={"z": 1}))
            found = matching_ids(rows, collection, row.condition)
            assert ("it" in found) is row.result, row.text
            assert ("other" in found) is matches(row.condition, {"z": 1}), row.text

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(histories, st.lists(conditions, min_size=1, max_size=6), st.sampled_from(["update", "rewrite"]))
    def test_any_filter_over_any_history_matches_and_counts_what_the_definition_says(
        self,
        open_rows: Callable[[], Rows],
        rows: Rows,
        history: list[list[tuple[str, Metadata | None]]],
        asked: list[Filter],
        how: str,
    ) -> None:
        """Asked after every step of the handle that writes and of another; at the end of a new one."""
        collection = make_collection(rows, f"history {len(rows.collections())}")
        other = open_rows()
        live: dict[str, Metadata] = {}
        for step in [*history, []]:
            for document_id, new in step:
                if new is None:
                    write(rows, collection, document_id)
                    live.pop(document_id, None)
                elif how == "update" and document_id in live:
                    document = dataclasses.replace(encoded(document_id).document, metadata=new)
                    write(rows, collection, MetadataUpdate(document_id, document))
                    live[document_id] = new
                else:
                    write(rows, collection, encoded(document_id, metadata=new))
                    live[document_id] = new
            for condition in asked:
                expected = sorted(id_ for id_, held in live.items() if matches(condition, held))
                for handle in (rows, other):
                    assert matching_ids(handle, collection, condition) == expected
                    for asked_of in (None, condition):
                        facets = handle.facets(collection.key, ["a", "b"], condition=asked_of, limit=3)
                        assert facets == {
                            field: _facet_of(field, live.values(), asked_of, limit=3) for field in "ab"
                        }

    def test_the_same_array_is_given_while_nothing_changed(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", metadata={"lang": "en"}))
        first = rows.matching_documents(collection.key, EN)
        write(rows, collection, encoded("b", metadata={"lang": "de"}))
        assert rows.matching_documents(collection.key, EN) is first
        assert not first.flags.writeable

    def test_collections_do_not_see_each_others_metadata(self, rows: Rows, collection: Collection) -> None:
        films = make_collection(rows, "films")
        write(rows, films, encoded("film", metadata={"lang": "en"}))
        write(rows, collection, encoded("book", metadata={"lang": "en"}), encoded("other"))
        assert matching_ids(rows, collection, EN) == ["book"]
        assert matching_ids(rows, collection, NOT_EN) == ["other"]
        assert matching_ids(rows, films, EN) == ["film"]
        assert matching_ids(rows, films, NOT_EN) == []

    def test_nothing_matches_in_a_dropped_or_unknown_collection(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a", metadata={"lang": "en"}))
        assert matching_ids(rows, collection, EN) == ["a"]
        rows.drop_collection(collection.name)
        for key in (collection.key, 10**9):
            assert rows.matching_documents(key, EN).size == 0
            assert rows.matching_documents(key, NOT_EN).size == 0
            assert rows.facets(key, ["lang"]) == {"lang": Facet((), 0, 0, 0)}
            assert rows.documents(key, condition=NOT_EN) == []

    def test_purging_a_dropped_collection_leaves_the_metadata_of_others(
        self, rows: Rows, collection: Collection
    ) -> None:
        films = make_collection(rows, "films")
        for each in (films, collection):
            write(rows, each, *(encoded(str(i), metadata={"lang": "en", "i": [i, "x"]}) for i in range(5)))
        rows.drop_collection(films.name)
        while films.key not in rows.purge_dropped(limit=3):
            pass
        assert matching_ids(rows, collection, EN) == ["0", "1", "2", "3", "4"]

    def test_many_documents_are_matched_as_few_are(self, rows: Rows, collection: Collection) -> None:
        """More than are looked at one by one."""
        held: dict[str, Metadata] = {
            f"{i:04}": {"n": i, "half": i % 2 == 0, "all": ["x", "y"], "id": f"id {i}"} for i in range(3000)
        }
        write(rows, collection, *(encoded(id_, "text", metadata=each) for id_, each in held.items()))
        write(rows, collection, "0000")
        del held["0000"]
        for written in (
            {"field": "half", "eq": True},
            {"not": {"field": "half", "eq": True}},
            {"field": "n", "gt": 100},
            {"field": "all", "in": ["x", "y", "z"]},
            {"field": "id", "in": [f"id {i}" for i in range(0, 6000, 2)]},
            {"field": "all", "exists": True},
            {"and": [{"field": "half", "eq": True}, {"field": "n", "lt": 2900}]},
            {"and": [{"field": "n", "gte": 10}, {"not": {"field": "half", "eq": True}}]},
            {"and": [{"not": {"field": "n", "lt": 10}}, {"not": {"field": "half", "eq": True}}]},
            {"and": [{"field": "all", "eq": "x"}, {"field": "n", "eq": 7}]},
            {"and": [{"field": "half", "eq": True}, {"field": "n", "lt": 10}, {"field": "all", "eq": "y"}]},
            {"or": [{"field": "n", "lt": 1500}, {"field": "half", "eq": False}]},
        ):
            condition = parse_filter(written)
            expected = [id_ for id_, each in held.items() if matches(condition, each)]
            assert matching_ids(rows, collection, condition) == expected

    def test_a_filtered_listing_is_paged_by_id(self, rows: Rows, collection: Collection) -> None:
        written = [
            encoded(f"{i:05}", "t", n_passages=0, metadata={"even": i % 2 == 0}) for i in range(12_000)
        ]
        write(rows, collection, *written)
        even = parse_filter({"field": "even", "eq": True})
        odd = parse_filter({"field": "even", "eq": False})
        for condition, start in ((even, 0), (odd, 1)):
            page = rows.documents(collection.key, condition=condition, limit=3)
            assert [each.id for each in page] == [f"{i:05}" for i in range(start, start + 6, 2)]
            page = rows.documents(collection.key, condition=condition, after="11995", limit=10)
            assert [each.id for each in page] == [f"{i:05}" for i in range(11_996 + start, 12_000, 2)]

    def test_a_filtered_listing_of_few_is_paged_by_id(self, rows: Rows, collection: Collection) -> None:
        languages = dict(zip("dacbe", ["en", "en", "de", "en", None], strict=True))
        write(rows, collection, *(encoded(id_, metadata={"lang": lang}) for id_, lang in languages.items()))
        listed = [each.id for each in rows.documents(collection.key, condition=EN, limit=2)]
        assert listed == ["a", "b"]
        rest = rows.documents(collection.key, condition=EN, after="b", limit=2)
        assert [each.id for each in rest] == ["d"]


class FacetsContract:
    def test_facets_count_documents_per_value(self, rows: Rows, collection: Collection) -> None:
        """A list counts under each of its values, once; 1 and 1.0 are one value, "1" and true are others."""
        held: Sequence[Metadata] = [
            {"v": "x"},
            {"v": ["x", "y", "x"]},
            {"v": 1},
            {"v": 1.0},
            {"v": "1"},
            {"v": True},
            {"v": None},
            {"v": []},
            {},
            {"v": "2024-01-01"},
        ]
        write(rows, collection, *(encoded(str(i), metadata=each) for i, each in enumerate(held)))
        facets = rows.facets(collection.key, ["v", "nowhere"])
        assert facets["v"] == Facet(
            values=(
                FacetValue(1, 2),
                FacetValue("x", 2),
                FacetValue(True, 1),
                FacetValue("1", 1),
                FacetValue("2024-01-01", 1),
                FacetValue("y", 1),
            ),
            n_other_values=0,
            n_other=0,
            n_missing=3,
        )
        assert type(facets["v"].values[2].value) is bool
        assert facets["nowhere"] == Facet((), 0, 0, n_missing=10)

    def test_what_is_beyond_the_limit_is_summed(self, rows: Rows, collection: Collection) -> None:
        counts = {"a": 4, "b": 3, "c": 3, "d": 1}
        languages = [lang for lang, n in counts.items() for _ in range(n)]
        write(rows, collection, *(encoded(str(i), metadata={"l": lang}) for i, lang in enumerate(languages)))
        assert rows.facets(collection.key, ["l"], limit=2)["l"] == Facet(
            (FacetValue("a", 4), FacetValue("b", 3)), n_other_values=2, n_other=4, n_missing=0
        )
        assert rows.facets(collection.key, ["l"], limit=0)["l"] == Facet((), 4, 11, 0)

    def test_facets_are_those_of_the_filtered_documents(self, rows: Rows, collection: Collection) -> None:
        write(
            rows,
            collection,
            encoded("a", metadata={"lang": "en", "year": 2020}),
            encoded("b", metadata={"lang": "en", "year": 2021}),
            encoded("c", metadata={"lang": "en"}),
            encoded("d", metadata={"lang": "de", "year": 2020}),
        )
        assert rows.facets(collection.key, ["year"], condition=EN)["year"] == Facet(
            (FacetValue(2020, 1), FacetValue(2021, 1)), 0, 0, n_missing=1
        )
        nothing = parse_filter({"field": "lang", "eq": "fr"})
        assert rows.facets(collection.key, ["year"], condition=nothing)["year"] == Facet((), 0, 0, 0)

    def test_facets_of_many_documents_are_exact_and_follow_every_change(
        self, rows: Rows, open_rows: Callable[[], Rows], collection: Collection
    ) -> None:
        """More than are looked at one by one, with lists, gaps and values that many and few hold."""
        other = open_rows()
        live: dict[str, Metadata] = {}

        def put(*numbers: int, **more: MetadataScalar) -> None:
            new = {str(i): {**_held(i), **more} for i in numbers}
            write(rows, collection, *(encoded(id_, "t", metadata=each) for id_, each in new.items()))
            live.update(new)

        def check() -> None:
            for condition in (None, KEEP):
                expected = _facet_of("v", live.values(), condition, limit=20)
                for handle in (rows, other):
                    found = handle.facets(collection.key, ["v"], condition=condition, limit=20)
                    assert found["v"] == expected

        put(*range(4000))
        check()
        put(*range(10), *range(5000, 5010), v="never seen")
        check()
        write(rows, collection, *(str(i) for i in range(0, 4000, 3)))
        for i in range(0, 4000, 3):
            del live[str(i)]
        check()
        document = dataclasses.replace(encoded("1", "t").document, metadata={"v": [1, "s1"], "keep": True})
        live["1"] = document.metadata
        write(rows, collection, MetadataUpdate("1", document))
        check()
        put(*range(6000, 8500))
        check()


KEEP = parse_filter({"field": "keep", "eq": True})


def _held(i: int) -> dict[str, MetadataValue]:
    return {"v": [i % 7, f"s{i % 900}"] if i % 4 else None, "keep": i % 5 != 0}


def _facet_of(field: str, held: Iterable[Metadata], condition: Filter | None, *, limit: int) -> Facet:
    """By the definition."""
    values = [
        {value for value in values_of(each.get(field)) if value.kind is not Kind.MOMENT}
        for each in held
        if condition is None or matches(condition, each)
    ]
    counts = Counter(value for each in values for value in each)
    ranked = sorted(counts, key=lambda value: (-counts[value], value.kind, value.value))
    return Facet(
        values=tuple(FacetValue(value.value, counts[value]) for value in ranked[:limit]),
        n_other_values=len(ranked[limit:]),
        n_other=sum(counts[value] for value in ranked[limit:]),
        n_missing=sum(not each for each in values),
    )
