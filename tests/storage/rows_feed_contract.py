"""Part of `rows_contract`: what derived indexes follow."""

from collections.abc import Callable
from itertools import pairwise
from threading import Thread

import numpy as np
import pytest

from app.domain import Collection, JobKind, View
from app.errors import CollectionNotFound
from app.storage.rows import Generation, Rows
from tests.storage.building import DIMENSIONS, encoded, inputs, make_collection, write

VIEWS: tuple[View, View] = ("passages", "documents")


def generation(collection: Collection, view: View, number: int) -> Generation:
    return Generation(collection.key, view, number, 10, 9, "checksum", '{"kind": "flat"}')


class FeedContract:
    def test_vectors_come_by_key_in_blocks(self, rows: Rows, collection: Collection) -> None:
        changes = [encoded(str(i), f"text {i}", n_passages=3) for i in range(4)]
        write(rows, collection, *changes)
        blocks = list(rows.vectors_after(collection.key, "passages", 0, block=5))
        assert [block.keys.tolist() for block in blocks] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]
        assert np.concatenate([b.document_keys for b in blocks]).tolist() == sorted([1, 2, 3, 4] * 3)
        stored = np.concatenate([block.vectors for block in blocks])
        assert stored.dtype == np.float16
        assert (stored == np.concatenate([change.passage_vectors for change in changes])).all()

    def test_document_vectors_own_themselves(self, rows: Rows, collection: Collection) -> None:
        changes = [encoded(str(i), f"text {i}") for i in range(3)]
        write(rows, collection, *changes)
        [block] = rows.vectors_after(collection.key, "documents", 0)
        assert block.keys.tolist() == block.document_keys.tolist() == [1, 2, 3]
        assert (block.vectors == [change.document_vector for change in changes]).all()

    @pytest.mark.parametrize("view", VIEWS)
    def test_vectors_are_those_after_a_key_up_to_another(
        self, rows: Rows, collection: Collection, view: View
    ) -> None:
        write(rows, collection, *[encoded(str(i), n_passages=1) for i in range(9)])
        [block] = rows.vectors_after(collection.key, view, 2, up_to=6)
        assert block.keys.tolist() == [3, 4, 5, 6]
        assert list(rows.vectors_after(collection.key, view, 9)) == []

    @pytest.mark.parametrize("view", VIEWS)
    def test_vectors_are_of_one_collection(self, rows: Rows, collection: Collection, view: View) -> None:
        other = make_collection(rows, "other")
        write(rows, collection, encoded("a", n_passages=1))
        write(rows, other, encoded("a", n_passages=1))
        write(rows, collection, encoded("b", n_passages=1))
        [block] = rows.vectors_after(collection.key, view, 0)
        assert block.keys.tolist() == [1, 3]
        assert (rows.max_key(collection.key, view), rows.max_key(other.key, view)) == (3, 2)

    def test_a_feed_goes_on_through_changes_between_its_blocks(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, *[encoded(str(i), n_passages=1) for i in range(4)])
        blocks = rows.vectors_after(collection.key, "passages", 0, block=2)
        assert next(blocks).keys.tolist() == [1, 2]
        write(rows, collection, "2", encoded("1", n_passages=1))
        assert next(blocks).keys.tolist() == [4, 5]

    @pytest.mark.parametrize("view", VIEWS)
    def test_vectors_by_key_are_live_and_ascending(
        self, rows: Rows, collection: Collection, view: View
    ) -> None:
        write(rows, collection, *[encoded(str(i), f"{i}", n_passages=1) for i in range(4)])
        write(rows, collection, "1")
        block = rows.vectors_by_key(view, [4, 2, 1, 77])
        assert block.keys.tolist() == block.document_keys.tolist() == [1, 4]
        assert block.vectors.shape == (2, DIMENSIONS)
        assert len(rows.vectors_by_key(view, []).keys) == 0

    def test_keys_may_be_numpy_integers(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        [keys] = [block.keys for block in rows.vectors_after(collection.key, "passages", 0)]
        assert (
            len(rows.passages_by_key(list(keys)))
            == len(rows.vectors_by_key("passages", list(keys)).keys)
            == 2
        )
        assert len(rows.documents_by_key(list(keys))) == 1

    def test_texts_are_the_slices_of_live_passages(self, rows: Rows, collection: Collection) -> None:
        long = "".join(chr(0x100 + i % 5000) for i in range(50_000))
        write(
            rows, collection, encoded("x"), encoded("a", long, n_passages=11, title="T"), encoded("b", "\0\0")
        )
        write(rows, collection, "x")
        blocks = list(rows.texts_after(collection.key, 0, block=4))
        assert [len(block) for block in blocks] == [4, 4, 4, 1]
        texts = [text for block in blocks for text in block]
        assert [text.key for text in texts] == list(range(3, 16))
        assert "".join(text.text for text in texts) == long + "\0\0"
        assert [(text.document_key, text.title) for text in texts] == [(2, "T")] * 11 + [(3, None)] * 2
        [part] = rows.texts_after(collection.key, 5, up_to=7)
        assert part == texts[3:5]

    @pytest.mark.parametrize("view", VIEWS)
    def test_the_largest_key_stays_when_its_owner_is_deleted(
        self, rows: Rows, collection: Collection, view: View
    ) -> None:
        assert rows.max_key(collection.key, view) == 0
        write(rows, collection, encoded("a", n_passages=1), encoded("b", n_passages=1))
        write(rows, collection, "b")
        assert rows.max_key(collection.key, view) == 2

    def test_tombstones_name_all_keys_of_what_died(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", n_passages=2), encoded("b", n_passages=3))
        write(rows, collection, encoded("b", "new"))
        assert rows.tombstones_after(collection.key, "passages", 0).keys.tolist() == [3, 4, 5]
        first = rows.tombstones_after(collection.key, "documents", 0)
        assert first.keys.tolist() == [2]
        write(rows, collection, "a", "absent")
        assert rows.tombstones_after(collection.key, "documents", first.sequence).keys.tolist() == [1]

    def test_tombstones_are_of_one_collection(self, rows: Rows, collection: Collection) -> None:
        other = make_collection(rows, "other")
        write(rows, other, encoded("a"))
        write(rows, other, "a")
        assert rows.tombstones_after(collection.key, "passages", 0).keys.tolist() == []

    def test_a_tombstone_sequence_is_never_zero(self, rows: Rows, collection: Collection) -> None:
        assert rows.tombstones_after(collection.key, "passages", 0).sequence >= 1

    def test_the_published_generation_is_current(self, rows: Rows, collection: Collection) -> None:
        assert rows.generation(collection.key, "passages") is None
        for number in (1, 2):
            rows.publish_generation(generation(collection, "passages", number))
        assert rows.generation(collection.key, "passages") == generation(collection, "passages", 2)
        assert rows.generation(collection.key, "documents") is None

    def test_a_retracted_generation_leaves_none(self, rows: Rows, collection: Collection) -> None:
        for number in (1, 2):
            rows.publish_generation(generation(collection, "passages", number))
        rows.retract_generation(collection.key, "passages", 1)
        assert rows.generation(collection.key, "passages") is not None
        rows.retract_generation(collection.key, "passages", 2)
        assert rows.generation(collection.key, "passages") is None

    def test_a_base_of_a_dropped_collection_is_not_published(
        self, rows: Rows, collection: Collection
    ) -> None:
        rows.drop_collection(collection.name)
        with pytest.raises(CollectionNotFound):
            rows.publish_generation(generation(collection, "passages", 1))

    def test_tombstones_stay_for_readers_of_this_base_and_the_one_before(
        self, rows: Rows, collection: Collection
    ) -> None:
        """One document dies before each of five publications; bases 4 and 5 are the last two."""
        write(rows, collection, *[encoded(str(i), n_passages=1) for i in range(5)])
        sequences = []
        for number in range(1, 6):
            write(rows, collection, str(number - 1))
            sequences.append(rows.tombstones_after(collection.key, "passages", 0).sequence)
            for view in VIEWS:
                rows.publish_generation(generation(collection, view, number))
        kept = rows.tombstones_after(collection.key, "passages", sequences[2])
        assert (kept.keys.tolist(), kept.is_complete) == ([4, 5], True)
        assert rows.tombstones_after(collection.key, "passages", 0).is_complete

    def test_a_reader_that_slept_too_long_is_told(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"), encoded("b"))
        asleep = rows.tombstones_after(collection.key, "passages", 0).sequence
        write(rows, collection, "a")
        for number in range(1, 6):
            for view in VIEWS:
                rows.publish_generation(generation(collection, view, number))
        assert not rows.tombstones_after(collection.key, "passages", asleep).is_complete
        assert rows.tombstones_after(collection.key, "passages", asleep + 1).is_complete

    def test_a_view_without_bases_keeps_all_tombstones(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", n_passages=1))
        write(rows, collection, "a")
        for number in range(1, 6):
            rows.publish_generation(generation(collection, "passages", number))
        assert rows.tombstones_after(collection.key, "documents", 0).keys.tolist() == [1]

    def test_the_data_version_changes_with_every_commit_of_anyone(
        self, rows: Rows, collection: Collection, open_rows: Callable[[], Rows]
    ) -> None:
        def elsewhere() -> None:
            rows.worker_heartbeat("w", lease_s=1)

        def in_another_thread() -> None:
            thread = Thread(target=elsewhere)
            thread.start()
            thread.join()

        other = open_rows()
        commits: list[Callable[[], object]] = [
            elsewhere,
            in_another_thread,
            lambda: write(rows, collection, encoded("a")),
            lambda: write(other, collection, encoded("b")),
            lambda: make_collection(other, "other"),
            lambda: rows.drop_collection("other"),
        ]
        seen = [rows.data_version()]
        for commit in commits:
            commit()
            seen.append(rows.data_version())
        assert all(before != after for before, after in pairwise(seen))

    def test_the_data_version_stays_while_nothing_is_committed(
        self, rows: Rows, collection: Collection
    ) -> None:
        before = rows.data_version()
        rows.documents(collection.key)
        with pytest.raises(ZeroDivisionError):
            rows.submit_job(collection.key, JobKind.DOCUMENTS, (1 // 0 for _ in "x"))  # type: ignore[misc]
        assert rows.claim_job("w", lease_s=1) is None
        assert rows.data_version() == before

    def test_the_data_version_is_the_same_for_all_threads(self, rows: Rows, collection: Collection) -> None:
        seen: list[int] = []
        for i in range(3):
            rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(i))
            thread = Thread(target=lambda: seen.append(rows.data_version()))
            thread.start()
            thread.join()
            seen.append(rows.data_version())
        assert seen[0] == seen[1] != seen[2] == seen[3] != seen[4] == seen[5]
