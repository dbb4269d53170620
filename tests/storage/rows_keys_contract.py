"""Part of `rows_contract`: keys of callers, and jobs of the collections that a key reaches."""

from collections.abc import Callable

import pytest

from app.domain import Collection, JobKind
from app.errors import Conflict, KeyNotFound
from app.keys import Scope, StoredKey, new_key
from app.storage.rows import Rows
from tests.storage.building import inputs, make_collection


def stored_key(name: str = "me", *, collections: list[str] | None = None) -> StoredKey:
    return new_key(name, scopes=[Scope.READ, Scope.WRITE], collections=collections)[0]


class KeysContract:
    def test_a_new_store_has_no_keys(self, rows: Rows) -> None:
        assert rows.api_keys() == []

    def test_keys_are_durable_and_come_oldest_first(self, rows: Rows, open_rows: Callable[[], Rows]) -> None:
        added = [stored_key("b"), stored_key("a", collections=["demo", "papers"]), stored_key("é 😀")]
        for each in added:
            rows.add_key(each)
        assert open_rows().api_keys() == added

    def test_an_id_is_taken_once(self, rows: Rows) -> None:
        stored = stored_key()
        rows.add_key(stored)
        with pytest.raises(Conflict, match=stored.key.id):
            rows.add_key(stored)
        assert rows.api_keys() == [stored]

    def test_a_revoked_key_stays_in_the_list(self, rows: Rows) -> None:
        first, second = stored_key(), stored_key()
        rows.add_key(first)
        rows.add_key(second)
        revoked = rows.revoke_key(first.key.id)
        assert revoked.revoked_at is not None
        assert [each.key for each in rows.api_keys()] == [revoked, second.key]

    def test_revoking_twice_keeps_the_first_moment(self, rows: Rows) -> None:
        stored = stored_key()
        rows.add_key(stored)
        assert rows.revoke_key(stored.key.id) == rows.revoke_key(stored.key.id)

    def test_a_key_that_is_not_there_cannot_be_revoked(self, rows: Rows) -> None:
        with pytest.raises(KeyNotFound, match="DROP"):
            rows.revoke_key("x'; DROP")

    def test_adding_and_revoking_change_the_data_version(
        self, rows: Rows, open_rows: Callable[[], Rows]
    ) -> None:
        other, stored = open_rows(), stored_key()
        before = rows.data_version()
        other.add_key(stored)
        added = rows.data_version()
        other.revoke_key(stored.key.id)
        assert len({before, added, rows.data_version()}) == 3

    def test_jobs_can_be_listed_of_some_collections(self, rows: Rows, collection: Collection) -> None:
        other = make_collection(rows, "other")
        jobs = {
            each.name: rows.submit_job(each.key, JobKind.DOCUMENTS, inputs(1)) for each in (collection, other)
        }
        assert rows.jobs(collections=["other", "missing"]) == [jobs["other"]]
        assert rows.jobs(collections=[]) == []
        assert len(rows.jobs(collections=[collection.name, "other"])) == 2
