"""What every implementation of `app.storage.rows.Rows` does. Inherit, and provide `open_rows`.

`open_rows` gives a new handle on the same truth each time, as another process would have.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import (
    Collection,
    Metadata,
    MetadataValue,
    Passage,
)
from app.errors import (
    BadDocument,
    BadVector,
    DocumentNotFound,
)
from app.storage.rows import EncodedDocument, MetadataUpdate, Rows
from tests.storage.building import encoded, make_collection, unit_vectors, write
from tests.storage.rows_aliases_contract import AliasesContract
from tests.storage.rows_classifiers_contract import ClassifiersContract
from tests.storage.rows_collections_contract import CollectionsContract
from tests.storage.rows_feed_contract import FeedContract
from tests.storage.rows_filters_contract import FacetsContract, FiltersContract
from tests.storage.rows_jobs_contract import JobsContract
from tests.storage.rows_keys_contract import KeysContract
from tests.storage.rows_rebuild_contract import RebuildContract
from tests.storage.rows_reports_contract import ReportsContract

OpenRows = Callable[[], Rows]

ODD_TEXTS = [
    "a\0b\0",
    "\ufeffwith a byte order mark",
    "line\r\nline\rline\ttab",
    "e\u0301 \u200d \u202eright to left\u202c",
    "😀" * 20_000,
    "x" * 100_000,
    "äöü\0" * 30_000,
]
ODD_IDS = [
    "a/b",
    "..",
    "é",
    "e\u0301",
    "😀",
    "with space",
    "'\"; --",
    "nul\0inside",
    "nul\0",
    "%00",
    "x" * 512,
]

unicode_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
metadata_values = scalars | unicode_text | st.lists(scalars | unicode_text, max_size=3)


class DocumentsContract:
    def test_a_document_comes_back_as_it_was_given(
        self, rows: Rows, collection: Collection, open_rows: OpenRows
    ) -> None:
        given_metadata: Metadata = {
            "s": "ü",
            "i": 2**70,
            "f": 0.1,
            "b": True,
            "n": None,
            "l": ["x", 1, None],
            "": "",
        }
        change = encoded("a", title="T", metadata=given_metadata, page_starts=(0, 5), unknown_share=0.25)
        write(rows, collection, change)
        stored = open_rows().document(collection.key, "a")
        assert stored.document == change.document
        assert (stored.n_passages, stored.n_tokens, stored.unknown_share) == (2, 20, 0.25)
        assert stored.created_at == stored.updated_at
        assert abs(dt.datetime.now(dt.UTC) - stored.created_at) < dt.timedelta(minutes=1)

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_texts_and_their_slices_survive_unchanged(
        self, rows: Rows, collection: Collection, text: str
    ) -> None:
        write(rows, collection, encoded("a", text, n_passages=7, title=text[:5]))
        stored = rows.document(collection.key, "a")
        keys = next(rows.vectors_after(collection.key, "passages", 0)).keys
        passages = rows.passages_by_key(keys.tolist())
        assert stored.document.text == text
        assert "".join(passages[key].text for key in sorted(passages)) == text
        assert all(p.text == text[p.passage.start : p.passage.end] for p in passages.values())
        assert {p.title for p in passages.values()} == {text[:5]}

    @pytest.mark.parametrize("text", [*ODD_TEXTS, "😀x" * 9_000], ids=range(len(ODD_TEXTS) + 1))
    def test_passages_know_their_place_in_utf16_on_request(
        self, rows: Rows, collection: Collection, text: str
    ) -> None:
        write(rows, collection, encoded("a", text, n_passages=7), encoded("b", "plain"))
        units = {"a": text.encode("utf-16-le"), "b": "plain".encode("utf-16-le")}
        passages = rows.passages_by_key(range(1, 9), with_utf16=True)
        assert {p.document_id for p in passages.values()} == {"a", "b"}
        for passage in passages.values():
            assert passage.utf16 is not None
            sliced = units[passage.document_id][2 * passage.utf16.start : 2 * passage.utf16.end]
            assert sliced.decode("utf-16-le") == passage.text
        assert {p.utf16 for p in rows.passages_by_key(range(1, 9)).values()} == {None}

    @pytest.mark.parametrize("document_id", ODD_IDS)
    def test_odd_ids_are_data(self, rows: Rows, collection: Collection, document_id: str) -> None:
        write(rows, collection, *[encoded(other, other) for other in ODD_IDS])
        assert rows.document(collection.key, document_id).document.text == document_id
        assert set(rows.content_hashes(collection.key, [document_id, "absent"])) == {document_id}
        write(rows, collection, document_id)
        left = [stored.id for stored in rows.documents(collection.key)]
        assert left == sorted(set(ODD_IDS) - {document_id})

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.dictionaries(unicode_text, metadata_values, max_size=4))
    def test_any_json_metadata_survives(
        self, rows: Rows, collection: Collection, metadata: dict[str, MetadataValue]
    ) -> None:
        write(rows, collection, encoded("a", metadata=metadata))
        assert rows.document(collection.key, "a").document.metadata == metadata

    def test_passages_know_their_document_and_page(self, rows: Rows, collection: Collection) -> None:
        change = dataclasses.replace(
            encoded("a", "0123456789", title="T", metadata={"k": 1}),
            passages=[Passage(0, 6, 4, page=1), Passage(4, 10, 5, page=2)],
        )
        write(rows, collection, change)
        stored = rows.passages_by_key([1, 2, 99])
        assert [stored[key].text for key in (1, 2)] == ["012345", "456789"]
        assert [stored[key].passage for key in (1, 2)] == change.passages
        assert {(p.document_id, p.document_key, p.title) for p in stored.values()} == {("a", 1, "T")}
        assert stored[1].metadata == {"k": 1}

    def test_an_update_gets_new_keys_and_keeps_the_moment_of_creation(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a", "before"))
        before = rows.document(collection.key, "a")
        write(rows, collection, encoded("a", "after"))
        after = rows.document(collection.key, "a")
        assert after.document.text == "after"
        assert after.key > before.key
        assert after.created_at == before.created_at < after.updated_at
        assert list(rows.documents_by_key([before.key, after.key])) == [after.key]
        assert sorted(rows.passages_by_key([1, 2, 3, 4])) == [3, 4]

    def test_a_document_deleted_and_written_again_is_new(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        before = rows.document(collection.key, "a")
        write(rows, collection, "a")
        write(rows, collection, encoded("a"))
        assert rows.document(collection.key, "a").created_at > before.created_at

    def test_other_metadata_leaves_keys_and_vectors(self, rows: Rows, collection: Collection) -> None:
        change = encoded("a", metadata={"old": 1})
        write(rows, collection, change)
        before = rows.document(collection.key, "a")
        newer = dataclasses.replace(change.document, metadata={"new": 2})
        write(rows, collection, MetadataUpdate("a", newer))
        after = rows.document(collection.key, "a")
        assert after.key == before.key
        assert after.document.metadata == {"new": 2}
        assert after.updated_at > before.updated_at
        assert rows.passages_by_key([1])[1].metadata == {"new": 2}
        assert rows.tombstones_after(collection.key, "passages", 0).keys.tolist() == []

    def test_the_last_change_to_an_id_wins(self, rows: Rows, collection: Collection) -> None:
        write(
            rows,
            collection,
            encoded("a", "1"),
            encoded("b", "1"),
            "a",
            encoded("b", "2"),
            "c",
            encoded("c", "3"),
        )
        texts = [
            rows.document(collection.key, head.id).document.text for head in rows.documents(collection.key)
        ]
        assert texts == ["2", "3"]

    def test_metadata_after_a_new_text_in_one_call_belongs_to_the_new_text(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a", "old text"))
        change = encoded("a", "new text", metadata={"v": 1})
        newest = dataclasses.replace(change.document, metadata={"v": 2})
        write(rows, collection, change, MetadataUpdate("a", newest))
        assert rows.document(collection.key, "a").document == newest

    def test_metadata_for_the_stored_text_undoes_a_new_text_before_it_in_the_call(
        self, rows: Rows, collection: Collection
    ) -> None:
        stored = encoded("a", "stored text")
        write(rows, collection, stored)
        back = dataclasses.replace(stored.document, metadata={"v": 2})
        write(rows, collection, encoded("a", "another text"), MetadataUpdate("a", back))
        assert rows.document(collection.key, "a").document == back

    @pytest.mark.parametrize("n_chars", [0, 1, 8_191, 8_192, 8_193, 20_000])
    def test_a_head_is_the_stored_document_with_the_length_of_its_text(
        self, rows: Rows, collection: Collection, n_chars: int
    ) -> None:
        text = ("é\0😀" * n_chars)[:n_chars]
        write(rows, collection, encoded("a", text, n_passages=2 if text else 0, title="T", metadata={"k": 1}))
        stored = rows.document(collection.key, "a")
        (head,) = rows.documents(collection.key)
        assert head == rows.documents_by_key([stored.key])[stored.key]
        assert (head.key, head.id, head.title, head.metadata, head.n_chars) == (
            stored.key,
            "a",
            "T",
            {"k": 1},
            n_chars,
        )
        assert (head.n_passages, head.n_tokens, head.unknown_share, head.created_at, head.updated_at) == (
            stored.n_passages,
            stored.n_tokens,
            stored.unknown_share,
            stored.created_at,
            stored.updated_at,
        )

    def test_documents_are_listed_by_code_point_and_paged(self, rows: Rows, collection: Collection) -> None:
        """In UTF-16 order 😀 would come before the private use character."""
        ids = ["B", "a", "a\0", "ab", "é", "\ue000", "😀"]
        write(rows, collection, *[encoded(document_id) for document_id in reversed(ids)])
        listed: list[str] = []
        while page := rows.documents(collection.key, after=listed[-1] if listed else None, limit=3):
            listed += [stored.id for stored in page]
        assert listed == ids
        assert [s.id for s in rows.documents(collection.key, after="\ud800")] == ["\ue000", "😀"]

    def test_content_hashes_are_those_of_existing_ids(self, rows: Rows, collection: Collection) -> None:
        changes = [encoded(str(i), f"text {i}") for i in range(1500)]
        write(rows, collection, *changes)
        hashes = rows.content_hashes(collection.key, (str(i) for i in range(2000)))
        assert hashes == {change.document.id: change.content_hash for change in changes}

    def test_an_absent_document_is_not_found(self, rows: Rows, collection: Collection) -> None:
        for document_id in ("absent", "\ud800", ""):
            with pytest.raises(DocumentNotFound):
                rows.document(collection.key, document_id)

    def test_a_document_without_passages_can_be_kept(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", "", n_passages=0))
        write(rows, collection, encoded("a", "", n_passages=0))
        assert rows.document(collection.key, "a").n_passages == 0
        assert rows.tombstones_after(collection.key, "documents", 0).keys.tolist() == [1]
        assert rows.tombstones_after(collection.key, "passages", 0).keys.tolist() == []

    @pytest.mark.parametrize(
        "change",
        [
            encoded("a", "lone \ud800 surrogate"),
            encoded("\udfff"),
            encoded("a", title="\ud800"),
            encoded("a", metadata={"k": "\ud800"}),
            encoded("a", metadata={"k": float("nan")}),
            encoded("a", metadata={"k": [float("inf")]}),
            encoded(""),
        ],
        ids=["text", "id", "title", "metadata", "nan", "infinity", "empty id"],
    )
    def test_what_no_store_can_keep_is_refused_and_nothing_is_written(
        self, rows: Rows, collection: Collection, change: EncodedDocument
    ) -> None:
        with pytest.raises(BadDocument):
            write(rows, collection, encoded("before"), change)
        assert rows.documents(collection.key) == []

    @pytest.mark.parametrize("value", [0.0, 0.5, np.nan, np.inf])
    def test_a_vector_without_length_1_is_refused(
        self, rows: Rows, collection: Collection, value: float
    ) -> None:
        change = encoded("a")
        change.passage_vectors[1] = value
        with pytest.raises(BadVector, match="'a'"):
            write(rows, collection, change)
        assert rows.documents(collection.key) == []

    def test_a_vector_of_another_dimension_is_refused(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        change = encoded("b")
        short = unit_vectors(4, seed="b").reshape(-1, 4)[:3]
        short /= np.linalg.norm(short.astype(np.float32), axis=1, keepdims=True)
        wrong = dataclasses.replace(change, document_vector=short[0], passage_vectors=short[1:])
        with pytest.raises(BadVector, match=r"4 dimensions.* 8"):
            write(rows, collection, wrong)

    def test_metadata_of_an_absent_document_is_refused(self, rows: Rows, collection: Collection) -> None:
        with pytest.raises(DocumentNotFound):
            write(rows, collection, encoded("b"), MetadataUpdate("a", encoded("a").document))
        assert rows.documents(collection.key) == []


class RowsContract(
    CollectionsContract,
    AliasesContract,
    DocumentsContract,
    FiltersContract,
    FacetsContract,
    FeedContract,
    ClassifiersContract,
    JobsContract,
    ReportsContract,
    RebuildContract,
    KeysContract,
):
    @pytest.fixture
    def rows(self, open_rows: OpenRows) -> Rows:
        return open_rows()

    @pytest.fixture
    def collection(self, rows: Rows) -> Collection:
        return make_collection(rows)
