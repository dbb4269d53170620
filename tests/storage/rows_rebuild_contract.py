"""Part of `rows_contract`: a collection and its standby."""

from collections.abc import Callable

import pytest

from app.domain import (
    Collection,
    CollectionSettings,
    Job,
    JobKind,
    JobState,
    SearchSettings,
    SplitterSettings,
)
from app.errors import (
    CollectionInUse,
    CollectionNotFound,
    Conflict,
    NameTaken,
    StandbyMissing,
)
from app.storage.rebuild_rows import Copy
from app.storage.rows import EncodedDocument, MetadataUpdate, Rows
from tests.storage.building import encoded, inputs, make_collection, outcome, write

SETTINGS = CollectionSettings(SplitterSettings(max_tokens=64, overlap_tokens=0))
STANDBY = "books-standby"


def begin(rows: Rows) -> tuple[Job, Collection]:
    """The leased job, and the standby."""
    job = rows.begin_reindex("books", SETTINGS, standby=STANDBY, fingerprint="other print", model="other")
    return claimed(rows, job), rows.collection(STANDBY)


def claimed(rows: Rows, job: Job) -> Job:
    found = rows.claim_job("w", lease_s=60, kinds=[JobKind.REINDEX])
    assert found is not None
    assert found.job.id == job.id
    return found.job


def copy_all(rows: Rows, job: Job, source: Collection, target: Collection) -> int:
    """One pass; returns how many documents it changed."""
    changes: list[Copy | str] = []
    for each in rows.differing_documents(source.key, target.key):
        stored = rows.document(source.key, each.document_id)
        again = encoded(stored.document.id, stored.document.text, metadata=stored.document.metadata)
        changes.append(Copy(stored, None if each.is_same_text else again))
    changes += rows.surplus_documents(source.key, target.key)
    rows.write_copies(target.key, changes, job_id=job.id, worker="w")
    return len(changes)


def switched(rows: Rows) -> tuple[Collection, Collection]:
    """`books` after a re-index, and its former form."""
    before = rows.collection("books")
    job, standby = begin(rows)
    mark = rows.change_mark(before.key)
    copy_all(rows, job, before, standby)
    assert rows.switch(job.id, "w", mark)
    return rows.collection("books"), rows.collection(STANDBY)


def contents(rows: Rows, collection: Collection) -> list[object]:
    return [
        (head.id, rows.document(collection.key, head.id).document, head.created_at, head.updated_at)
        for head in rows.documents(collection.key)
    ]


class RebuildContract:
    def test_a_standby_is_made_empty_with_its_own_settings_and_model(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"), encoded("b"))
        rows.set_search_settings("books", SearchSettings(candidates=5))
        job, standby = begin(rows)
        assert (job.kind, job.collection, job.n_inputs) == (JobKind.REINDEX, "books", 2)
        assert (standby.settings, standby.fingerprint, standby.model) == (SETTINGS, "other print", "other")
        assert (standby.standby_of, standby.is_building) == ("books", True)
        assert standby.search == SearchSettings(candidates=5)
        assert rows.documents(standby.key) == []
        assert rows.standby(collection.key) == standby

    def test_after_the_switch_the_names_have_changed_places(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a", metadata={"year": 1}), encoded("b"))
        before = contents(rows, collection)
        live, former = switched(rows)
        assert former.key == collection.key
        assert (live.name, live.settings, live.standby_of, live.is_building) == (
            "books",
            SETTINGS,
            None,
            False,
        )
        assert (former.name, former.standby_of, former.is_building) == (STANDBY, "books", False)
        assert contents(rows, live) == contents(rows, former) == before

    def test_texts_metadata_and_moments_are_copied(self, rows: Rows, collection: Collection) -> None:
        change = encoded("a", "a text", title="T", metadata={"x": [1, "y"]}, page_starts=(0, 2))
        write(rows, collection, change)
        write(rows, collection, MetadataUpdate("a", change.document))
        job, standby = begin(rows)
        source = rows.document(collection.key, "a")
        rows.write_copies(standby.key, [Copy(source, change)], job_id=job.id, worker="w")
        copied = rows.document(standby.key, "a")
        assert copied.document == source.document
        assert source.created_at < source.updated_at
        assert (copied.created_at, copied.updated_at) == (source.created_at, source.updated_at)
        assert copied.key > source.key

    def test_only_what_differs_is_listed(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, *(encoded(id_) for id_ in "abcd"))
        job, standby = begin(rows)
        copy_all(rows, job, collection, standby)
        assert rows.differing_documents(collection.key, standby.key) == []
        changed = encoded("b", metadata={"new": 1})
        write(
            rows,
            collection,
            encoded("a", "a new text"),
            MetadataUpdate("b", changed.document),
            "c",
            encoded("e"),
        )
        listed = rows.differing_documents(collection.key, standby.key)
        assert [(each.document_id, each.is_same_text) for each in listed] == [
            ("a", False),
            ("b", True),
            ("e", False),
        ]
        assert rows.surplus_documents(collection.key, standby.key) == ["c"]
        assert listed[0].size_bytes == len("a new text")
        assert copy_all(rows, job, collection, standby) == 4
        assert copy_all(rows, job, collection, standby) == 0
        assert contents(rows, standby) == contents(rows, collection)

    def test_what_differs_is_listed_in_pages_by_id(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, *(encoded(id_) for id_ in ("é", "b", "a/c", "B", "😀", "nul\0")))
        _, standby = begin(rows)
        listed: list[str] = []
        while page := rows.differing_documents(
            collection.key, standby.key, after=listed[-1] if listed else None, limit=2
        ):
            assert len(page) <= 2
            listed += [each.document_id for each in page]
        assert listed == sorted(["é", "b", "a/c", "B", "😀", "nul\0"])

    def test_a_text_rewritten_as_it_was_is_a_new_revision(self, rows: Rows, collection: Collection) -> None:
        """Deleted and sent again: the moment of creation has changed."""
        write(rows, collection, encoded("a"))
        job, standby = begin(rows)
        copy_all(rows, job, collection, standby)
        write(rows, collection, "a")
        write(rows, collection, encoded("a"))
        [listed] = rows.differing_documents(collection.key, standby.key)
        assert not listed.is_same_text
        copy_all(rows, job, collection, standby)
        assert contents(rows, standby) == contents(rows, collection)

    @pytest.mark.parametrize("change", ["text", "metadata", "delete", "new"])
    def test_nothing_is_switched_when_the_collection_has_changed(
        self, rows: Rows, collection: Collection, change: str
    ) -> None:
        write(rows, collection, encoded("a"), encoded("b"))
        job, standby = begin(rows)
        mark = rows.change_mark(collection.key)
        copy_all(rows, job, collection, standby)
        assert rows.change_mark(collection.key) == mark
        changes: dict[str, EncodedDocument | MetadataUpdate | str] = {
            "text": encoded("a", "another text"),
            "metadata": MetadataUpdate("a", encoded("a", metadata={"x": 1}).document),
            "delete": "a",
            "new": encoded("c"),
        }
        write(rows, collection, changes[change])
        assert not rows.switch(job.id, "w", mark)
        assert rows.collection("books") == collection
        assert rows.job(job.id).state is JobState.RUNNING
        mark = rows.change_mark(collection.key)
        copy_all(rows, job, collection, standby)
        assert rows.switch(job.id, "w", mark)
        assert contents(rows, rows.collection("books")) == contents(rows, collection)

    def test_a_switch_finishes_its_job_and_shows_all_as_done(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"))
        switched(rows)
        job = rows.jobs(kind=JobKind.REINDEX)[0]
        assert (job.state, job.n_done, job.collection) == (JobState.SUCCEEDED, 1, "books")

    def test_progress_is_counted_with_what_is_written(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, *(encoded(id_) for id_ in "abc"))
        job, standby = begin(rows)
        for n_done, id_ in enumerate("ab", start=1):
            copy = Copy(rows.document(collection.key, id_), encoded(id_))
            rows.write_copies(standby.key, [copy], job_id=job.id, worker="w")
            assert rows.job(job.id).n_done == n_done

    def test_aliases_jobs_and_search_settings_stay_with_the_name(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"))
        [written] = rows.jobs()
        rows.put_alias("current", "books")
        evaluation = rows.submit_job(collection.key, JobKind.EVALUATION, inputs(1), request="{}")
        job, standby = begin(rows)
        of_standby = rows.submit_job(standby.key, JobKind.EVALUATION, inputs(1), request="{}")
        rows.set_search_settings("books", SearchSettings(candidates=9))
        copy_all(rows, job, collection, standby)
        assert rows.switch(job.id, "w", rows.change_mark(collection.key))
        live = rows.collection("books")
        assert live == rows.collection("current")
        assert live.search == SearchSettings(candidates=9)
        assert {rows.job(each.id).collection for each in (written, evaluation, job)} == {"books"}
        assert rows.job(of_standby.id).collection == STANDBY
        assert [each.id for each in rows.jobs(collection_key=live.key)] == [job.id, evaluation.id, written.id]

    def test_a_job_that_is_writing_is_given_back_and_goes_on_with_the_new_form(
        self, rows: Rows, collection: Collection
    ) -> None:
        job, _ = begin(rows)
        writing = rows.submit_job(collection.key, JobKind.DOCUMENTS, inputs(2))
        assert rows.claim_job("w", lease_s=60) is not None
        rows.write_documents(
            collection.key, [encoded("a")], job_id=writing.id, worker="w", outcomes=[outcome(0, "a")]
        )
        standby = rows.standby(collection.key)
        copy_all(rows, job, collection, standby)
        assert rows.switch(job.id, "w", rows.change_mark(collection.key))
        with pytest.raises(Conflict):
            rows.write_documents(
                collection.key, [encoded("b")], job_id=writing.id, worker="w", outcomes=[outcome(1, "b")]
            )
        again = rows.claim_job("w", lease_s=60)
        assert again is not None
        assert (again.job.id, again.collection.key, again.n_done) == (writing.id, standby.key, 1)
        assert again.attempts == 1

    def test_documents_sent_for_what_a_collection_was_before_go_to_what_it_is(
        self, rows: Rows, collection: Collection
    ) -> None:
        """Whoever looked the collection up before the switch may submit after it."""
        live, _ = switched(rows)
        for kind in (JobKind.DOCUMENTS, JobKind.DELETE, JobKind.FILES):
            job = rows.submit_job(collection.key, kind, inputs(1))
            found = rows.claim_job("w", lease_s=60)
            assert found is not None
            assert (found.job.id, found.collection) == (job.id, live)

    def test_rolling_back_carries_what_was_written_since(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, *(encoded(id_) for id_ in "abc"))
        live, former = switched(rows)
        changed = encoded("b", metadata={"new": 1})
        write(rows, live, encoded("a", "new text"), MetadataUpdate("b", changed.document), "c", encoded("d"))
        wanted = contents(rows, live)
        job = rows.begin_rollback("books")
        assert job.n_inputs == 4
        job = claimed(rows, job)
        mark = rows.change_mark(live.key)
        assert copy_all(rows, job, live, former) == 4
        assert rows.switch(job.id, "w", mark)
        again = rows.collection("books")
        assert (again.key, again.settings, again.fingerprint) == (
            collection.key,
            CollectionSettings(),
            "print",
        )
        assert contents(rows, again) == wanted
        assert rows.collection(STANDBY).key == live.key

    def test_there_and_back_again_copies_nothing_that_did_not_change(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"), encoded("b"))
        live, _ = switched(rows)
        write(rows, live, encoded("b", "new text"))
        for n_copied in (1, 0, 0):
            source, target = rows.collection("books"), rows.collection(STANDBY)
            job = claimed(rows, rows.begin_rollback("books"))
            mark = rows.change_mark(source.key)
            assert copy_all(rows, job, source, target) == n_copied == job.n_inputs
            assert rows.switch(job.id, "w", mark)

    def test_a_reindex_that_does_not_succeed_leaves_nothing(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        ends: list[Callable[[Job], object]] = [
            lambda job: rows.cancel_job(job.id),
            lambda job: rows.finish_job(job.id, "w", JobState.FAILED, error="no"),
            lambda job: rows.forget_job(job.id),
        ]
        for end in ends:
            job, standby = begin(rows)
            copy_all(rows, job, collection, standby)
            end(job)
            assert rows.collections() == [collection]
            with pytest.raises(Conflict):
                rows.write_copies(standby.key, ["a"], job_id=job.id, worker="w")
            with pytest.raises(Conflict):
                rows.switch(job.id, "w", rows.change_mark(collection.key))
            assert rows.purge_dropped() == [standby.key]

    def test_a_rollback_that_does_not_succeed_leaves_the_former(
        self, rows: Rows, collection: Collection
    ) -> None:
        write(rows, collection, encoded("a"))
        live, former = switched(rows)
        job = claimed(rows, rows.begin_rollback("books"))
        rows.cancel_job(job.id)
        assert rows.collections() == [live, former]
        rows.begin_rollback("books")

    def test_a_dropped_standby_cancels_its_job_and_leaves_the_collection(
        self, rows: Rows, collection: Collection
    ) -> None:
        job, standby = begin(rows)
        rows.drop_collection(STANDBY)
        assert rows.job(job.id).state is JobState.CANCELLED
        assert rows.collections() == [collection]
        with pytest.raises(CollectionNotFound):
            rows.standby(collection.key)
        assert rows.purge_dropped() == [standby.key]
        begin(rows)

    def test_a_collection_is_dropped_with_its_standby(self, rows: Rows, collection: Collection) -> None:
        write(rows, collection, encoded("a"))
        live, former = switched(rows)
        rows.begin_rollback("books")
        rows.drop_collection("books")
        assert rows.collections() == []
        assert rows.jobs() == []
        assert rows.claim_job("w", lease_s=60) is None
        assert set(rows.purge_dropped()) == {live.key, former.key}

    def test_one_standby_at_a_time(self, rows: Rows, collection: Collection) -> None:
        begin(rows)
        with pytest.raises(CollectionInUse, match=r"being built|its job"):
            rows.begin_reindex("books", SETTINGS, standby="another", fingerprint="p", model="m")
        with pytest.raises(StandbyMissing, match="being built"):
            rows.begin_rollback("books")
        rows.drop_collection(STANDBY)
        switched(rows)
        with pytest.raises(CollectionInUse, match="roll back to it, or delete it"):
            rows.begin_reindex("books", SETTINGS, standby="another", fingerprint="p", model="m")
        rows.begin_rollback("books")
        with pytest.raises(CollectionInUse, match="job"):
            rows.begin_rollback("books")

    def test_a_standby_has_none_of_its_own(self, rows: Rows, collection: Collection) -> None:
        switched(rows)
        with pytest.raises(CollectionInUse, match="'books'"):
            rows.begin_reindex(STANDBY, SETTINGS, standby="another", fingerprint="p", model="m")
        with pytest.raises(CollectionInUse, match="'books'"):
            rows.begin_rollback(STANDBY)
        with pytest.raises(CollectionInUse, match="'books'"):
            rows.put_alias("current", STANDBY)
        with pytest.raises(CollectionInUse, match="'books'"):
            rows.set_search_settings(STANDBY, SearchSettings())

    def test_a_standby_needs_a_name_of_its_own(self, rows: Rows, collection: Collection) -> None:
        make_collection(rows, "films")
        rows.put_alias("current", "books")
        for taken in ("books", "films", "current"):
            with pytest.raises(NameTaken, match=taken):
                rows.begin_reindex("books", SETTINGS, standby=taken, fingerprint="p", model="m")
        assert rows.jobs() == []

    def test_through_an_alias_the_collection_is_reindexed(self, rows: Rows, collection: Collection) -> None:
        rows.put_alias("current", "books")
        rows.begin_reindex("current", SETTINGS, standby=STANDBY, fingerprint="p", model="m")
        assert rows.standby(collection.key).standby_of == "books"

    def test_without_a_collection_or_a_former_form_there_is_nothing_to_do(
        self, rows: Rows, collection: Collection
    ) -> None:
        with pytest.raises(StandbyMissing, match="never re-indexed"):
            rows.begin_rollback("books")
        with pytest.raises(CollectionNotFound):
            rows.begin_rollback("nowhere")
        with pytest.raises(CollectionNotFound):
            rows.begin_reindex("nowhere", SETTINGS, standby=STANDBY, fingerprint="p", model="m")
