"""Standbys: a second form of a collection, filled by a job, which ends by changing the names of both."""

import dataclasses
import json
import secrets
import sqlite3

from app.domain import WRITES, Collection, CollectionSettings, Job, JobKind, JobState
from app.errors import CollectionInUse, CollectionNotFound, NameTaken, StandbyMissing
from app.storage.rebuild_rows import ChangeMark
from app.storage.sqlite.collections import (
    find_collection,
    read_change_mark,
    require_collection,
    standby_of,
)
from app.storage.sqlite.connection import Database
from app.storage.sqlite.copies import count_differing
from app.storage.sqlite.jobs import finish, require_job, require_leased
from app.storage.sqlite.times import now_us

STANDBYS_8 = (
    "ALTER TABLE collections ADD COLUMN standby_of INTEGER REFERENCES collections (key)",
    "ALTER TABLE collections ADD COLUMN is_building INTEGER NOT NULL DEFAULT 0",
    "CREATE UNIQUE INDEX collections_standby ON collections (standby_of) WHERE standby_of IS NOT NULL",
    # Key of the revision that a copy was made of: where one document copied the other, texts are the same.
    "ALTER TABLE documents ADD COLUMN copied_from INTEGER",
)


class RebuildRows:
    _database: Database

    def begin_reindex(
        self, name: str, settings: CollectionSettings, *, standby: str, fingerprint: str, model: str
    ) -> Job:
        with self._database.write() as connection:
            live = _require_live(connection, name)
            if (present := standby_of(connection, live.key)) is not None:
                raise CollectionInUse(
                    f"{live.name!r} has the standby {present.name!r} already; {_way_out(present)}"
                )
            if (taken := find_collection(connection, standby)) is not None:
                kind = "a collection" if taken.name == standby else "an alias"
                raise NameTaken(f"{standby!r} is {kind} already; give the standby another name")
            connection.execute(
                "INSERT INTO collections (name, settings, fingerprint, model, created_at, search_settings, "
                "standby_of, is_building) SELECT ?, ?, ?, ?, ?, search_settings, key, 1 FROM collections "
                "WHERE key = ?",
                (standby, json.dumps(dataclasses.asdict(settings)), fingerprint, model, now_us(), live.key),
            )
            (n_documents,) = connection.execute(
                "SELECT n_documents FROM collections WHERE key = ?", (live.key,)
            ).fetchone()
            return _insert_job(connection, live.key, n_documents)

    def begin_rollback(self, name: str) -> Job:
        with self._database.read() as connection:  # counting takes seconds where there are a million
            live, standby = _require_way_back(connection, name)
            n_differing = count_differing(connection, live.key, standby.key)
        with self._database.write() as connection:
            live, _ = _require_way_back(connection, name)
            return _insert_job(connection, live.key, n_differing)

    def standby(self, collection_key: int) -> Collection:
        with self._database.read() as connection:
            standby = standby_of(connection, collection_key)
        if standby is None:
            raise CollectionNotFound("the standby has been dropped")
        return standby

    def change_mark(self, collection_key: int) -> ChangeMark:
        with self._database.read() as connection:
            return read_change_mark(connection, collection_key)

    def switch(self, job_id: str, worker: str, mark: ChangeMark) -> bool:
        with self._database.write() as connection:
            job = require_leased(connection, job_id, worker)
            before = job["collection_key"]
            standby = standby_of(connection, before)
            if standby is None:
                raise CollectionNotFound("the standby has been dropped")
            if read_change_mark(connection, before) != mark:
                return False
            _exchange(connection, before, standby.key)
            connection.execute("UPDATE jobs SET n_done = n_inputs WHERE key = ?", (job["key"],))
            finish(connection, job_id, JobState.SUCCEEDED, error=None)
            return True


def _require_live(connection: sqlite3.Connection, name: str) -> Collection:
    collection = require_collection(connection, name)
    if collection.standby_of is not None:
        raise CollectionInUse(
            f"{collection.name!r} is the standby of {collection.standby_of!r}; name that one"
        )
    return collection


def _require_way_back(connection: sqlite3.Connection, name: str) -> tuple[Collection, Collection]:
    """The collection and the standby that it may go back to."""
    live = _require_live(connection, name)
    standby = standby_of(connection, live.key)
    if standby is None:
        raise StandbyMissing(
            f"{live.name!r} has no standby: it was never re-indexed, or what it was before is deleted"
        )
    if standby.is_building:
        raise StandbyMissing(f"the standby {standby.name!r} is being built; {_way_out(standby)}")
    under_way = connection.execute(
        "SELECT id FROM jobs WHERE collection_key = ? AND kind = ? AND state IN ('queued', 'running')",
        (live.key, JobKind.REINDEX),
    ).fetchone()
    if under_way is not None:
        raise CollectionInUse(f"the job {under_way['id']} is to switch to {standby.name!r} already")
    return live, standby


def _way_out(standby: Collection) -> str:
    if standby.is_building:
        return "wait for its job, or cancel that"
    return "roll back to it, or delete it"


def _insert_job(connection: sqlite3.Connection, collection_key: int, n_inputs: int) -> Job:
    job_id = secrets.token_hex(16)
    connection.execute(
        "INSERT INTO jobs (id, collection_key, kind, state, n_inputs, created_at) "
        "VALUES (?, ?, ?, 'queued', ?, ?)",
        (job_id, collection_key, JobKind.REINDEX, n_inputs, now_us()),
    )
    return require_job(connection, job_id)


def _exchange(connection: sqlite3.Connection, before: int, after: int) -> None:
    """What belongs to a name goes with it: aliases, jobs and search settings.

    A job that is writing is given back: what its worker has under way is refused, and it goes on from its
    last stored outcome with what has the name then.
    """
    keys = {"before": before, "after": after}
    names = dict(connection.execute("SELECT key, name FROM collections WHERE key IN (?, ?)", (before, after)))
    connection.execute("UPDATE collections SET name = '' WHERE key = :before", keys)
    for key, name in ((after, names[before]), (before, names[after])):
        connection.execute("UPDATE collections SET name = ? WHERE key = ?", (name, key))
    connection.execute(
        "UPDATE collections SET standby_of = NULL, is_building = 0, search_settings = "
        "(SELECT search_settings FROM collections WHERE key = :before) WHERE key = :after",
        keys,
    )
    connection.execute("UPDATE collections SET standby_of = :after WHERE key = :before", keys)
    connection.execute("UPDATE aliases SET collection_key = :after WHERE collection_key = :before", keys)
    connection.execute(
        "UPDATE jobs SET collection_key = CASE collection_key WHEN :after THEN :before ELSE :after END "
        "WHERE collection_key IN (:before, :after)",
        keys,
    )
    connection.execute(
        "UPDATE jobs SET state = 'queued', worker = NULL, leased_until = NULL, "
        "attempts = max(attempts - 1, 0) "
        "WHERE collection_key = ? AND state = 'running' AND kind IN (?, ?, ?)",
        (after, *WRITES),
    )
