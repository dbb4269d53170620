"""Any sequence of writes gives what a dictionary would give."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.domain import Document, View
from app.storage.rows import EncodedDocument, MetadataUpdate
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write
from tests.storage.consistency import assert_sound

ids = st.sampled_from(["a", "b", "c", "a\0", "é", "😀"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
metadata = st.dictionaries(st.sampled_from("xyz"), st.integers() | texts, max_size=2)
upserts = st.builds(
    encoded, ids, texts, n_passages=st.integers(0, 4), title=st.none() | texts, metadata=metadata
)


class SqliteAgainstDictionary(RuleBasedStateMachine):
    """`live` is what should be stored; a follower copies keys the way a derived index does."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db"
        self.rows = SqliteRows(self.path)
        self.collection = make_collection(self.rows)
        self.live: dict[str, EncodedDocument] = {}
        self.followed: dict[View, set[int]] = {"passages": set(), "documents": set()}
        self.newest_key: dict[View, int] = {"passages": 0, "documents": 0}
        self.sequence = 0

    def teardown(self) -> None:
        if hasattr(self, "rows"):
            self.rows.close()
            assert_sound(self.path)
            self.folder.cleanup()

    @rule(changes=st.lists(upserts | ids, max_size=5))
    def change(self, changes: list[EncodedDocument | str]) -> None:
        write(self.rows, self.collection, *changes)
        for change in changes:
            if isinstance(change, str):
                self.live.pop(change, None)
            else:
                self.live[change.document.id] = change

    @rule(data=st.data(), metadata=metadata)
    def change_metadata(self, data: st.DataObject, metadata: dict[str, int | str]) -> None:
        if not self.live:
            return
        document_id = data.draw(st.sampled_from(sorted(self.live)))
        before = self.live[document_id]
        newer = dataclasses.replace(before.document, metadata=metadata)
        write(self.rows, self.collection, MetadataUpdate(document_id, newer))
        self.live[document_id] = dataclasses.replace(before, document=newer)

    @rule()
    def reopen(self) -> None:
        self.rows.close()
        self.rows = SqliteRows(self.path)

    @rule()
    def follow(self) -> None:
        """As a derived index: new vectors after the last key, minus what died."""
        sequence = self.sequence
        for view, keys in self.followed.items():
            for block in self.rows.vectors_after(self.collection.key, view, self.newest_key[view], block=3):
                keys.update(block.keys.tolist())
            self.newest_key[view] = self.rows.max_key(self.collection.key, view)
            tombstones = self.rows.tombstones_after(self.collection.key, view, self.sequence)
            keys.difference_update(tombstones.keys.tolist())
            sequence = tombstones.sequence
            everything = self.rows.vectors_after(self.collection.key, view, 0)
            assert keys == {key for block in everything for key in block.keys.tolist()}
        self.sequence = sequence

    @invariant()
    def documents_are_those_of_the_dictionary(self) -> None:
        key = self.collection.key
        stored = [self.rows.document(key, head.id).document for head in self.rows.documents(key)]
        expected: list[Document] = [self.live[document_id].document for document_id in sorted(self.live)]
        assert stored == expected

    @invariant()
    def vectors_are_those_of_the_dictionary(self) -> None:
        by_key = {
            self.rows.document(self.collection.key, document_id).key: change
            for document_id, change in self.live.items()
        }
        for block in self.rows.vectors_after(self.collection.key, "documents", 0):
            assert block.keys.tolist() == sorted(by_key)
            expected = [by_key[key].document_vector for key in sorted(by_key)]
            assert (block.vectors == np.array(expected)).all()
        for block in self.rows.vectors_after(self.collection.key, "passages", 0):
            vectors = np.concatenate([by_key[key].passage_vectors for key in sorted(by_key)])
            assert (block.vectors == vectors).all()

    @invariant()
    def texts_are_those_of_the_dictionary(self) -> None:
        fed = [text.text for block in self.rows.texts_after(self.collection.key, 0) for text in block]
        live = sorted(
            self.live.values(),
            key=lambda change: self.rows.document(self.collection.key, change.document.id).key,
        )
        assert fed == [
            change.document.text[passage.start : passage.end]
            for change in live
            for passage in change.passages
        ]


TestSqliteAgainstDictionary = SqliteAgainstDictionary.TestCase
TestSqliteAgainstDictionary.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
