"""Collections: named sets of documents made by one model and one splitter."""

import dataclasses
import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from app.domain import (
    Collection,
    CollectionSettings,
    CollectionStats,
    Fusion,
    IndexSettings,
    JobKind,
    SearchSettings,
    SplitterSettings,
)
from app.errors import CollectionExists, CollectionInUse, CollectionNotFound, NameTaken, StorageDamaged
from app.storage.rebuild_rows import ChangeMark
from app.storage.sqlite.connection import Database, n_free_pages, return_free_pages
from app.storage.sqlite.times import from_us, now_us
from app.storage.sqlite.values import from_json

COLLECTION = """
    SELECT c.*, l.name AS standby_of_name FROM collections c LEFT JOIN collections l ON l.key = c.standby_of
"""
KEY_OF_ALIAS = "(SELECT collection_key FROM aliases WHERE name = :name)"


class CollectionRows:
    _database: Database

    def create_collection(
        self, name: str, settings: CollectionSettings, *, fingerprint: str, model: str
    ) -> tuple[Collection, bool]:
        with self._database.write() as connection:
            present = find_collection(connection, name)
            if present is not None:
                if present.name != name:
                    raise NameTaken(f"{name!r} is an alias, of the collection {present.name!r}")
                _require_same(present, settings, fingerprint=fingerprint, model=model)
                return present, False
            connection.execute(
                "INSERT INTO collections (name, settings, fingerprint, model, created_at) "
                "VALUES (?, ?, ?, ?, ?)",
                (name, json.dumps(dataclasses.asdict(settings)), fingerprint, model, now_us()),
            )
            created = find_collection(connection, name)
            assert created is not None
            return created, True

    def collection(self, name: str) -> Collection:
        with self._database.read() as connection:
            return require_collection(connection, name)

    def collections(self) -> Sequence[Collection]:
        with self._database.read() as connection:
            rows = connection.execute(f"{COLLECTION} WHERE c.dropped_at IS NULL ORDER BY c.name")
            return [read_collection(row) for row in rows]

    def set_search_settings(self, name: str, settings: SearchSettings) -> Collection:
        with self._database.write() as connection:
            collection = require_collection(connection, name)
            if collection.standby_of is not None:
                raise CollectionInUse(
                    f"{collection.name!r} is the standby of {collection.standby_of!r}, whose search settings "
                    "it gets when it is switched to"
                )
            connection.execute(
                "UPDATE collections SET search_settings = ? WHERE key = ?",
                (json.dumps(dataclasses.asdict(settings)), collection.key),
            )
            return require_collection(connection, name)

    def drop_collection(self, name: str) -> None:
        with self._database.write() as connection:
            collection = _require_droppable(connection, name)
            standby = standby_of(connection, collection.key)
            if collection.standby_of is not None:
                _cancel_reindex(connection, standby=collection)
            for each in (collection, *([] if standby is None else [standby])):
                _drop(connection, each.key)

    def purge_dropped(self, *, limit: int = 10_000) -> Sequence[int]:
        """What it frees goes back to the file system; pages freed otherwise are kept for new rows."""
        with self._database.write() as connection:
            n_free = n_free_pages(connection)
            gone = []
            for (key,) in connection.execute(
                "SELECT key FROM collections WHERE dropped_at IS NOT NULL ORDER BY key"
            ).fetchall():
                limit -= _purge(connection, key, limit=limit)
                if limit <= 0:
                    break
                gone.append(key)
            return_free_pages(connection, n_free_pages(connection) - n_free)
            return gone

    def collection_stats(self, collection_key: int) -> CollectionStats:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT n_documents, n_passages, n_tokens, n_unknown_tokens, size_bytes FROM collections "
                "WHERE key = ? AND dropped_at IS NULL",
                (collection_key,),
            ).fetchone()
        if row is None:
            raise CollectionNotFound("the collection has been dropped")
        return CollectionStats(
            n_documents=row["n_documents"],
            n_passages=row["n_passages"],
            n_tokens=row["n_tokens"],
            unknown_share=row["n_unknown_tokens"] / max(1, row["n_tokens"]),
            size_bytes=row["size_bytes"],
        )


def require_collection(connection: sqlite3.Connection, name: str) -> Collection:
    collection = find_collection(connection, name)
    if collection is None:
        raise CollectionNotFound(f"there is no collection {name!r}")
    return collection


def find_collection(connection: sqlite3.Connection, name: str) -> Collection | None:
    """The one place where a name becomes a collection: its own, or that of an alias."""
    row = connection.execute(
        f"{COLLECTION} WHERE c.dropped_at IS NULL AND (c.name = :name OR c.key = {KEY_OF_ALIAS})",
        {"name": name},
    ).fetchone()
    return None if row is None else read_collection(row)


def standby_of(connection: sqlite3.Connection, key: int) -> Collection | None:
    row = connection.execute(
        f"{COLLECTION} WHERE c.standby_of = ? AND c.dropped_at IS NULL", (key,)
    ).fetchone()
    return None if row is None else read_collection(row)


def drop_unfinished_standby(connection: sqlite3.Connection, job_id: str) -> None:
    """That a job of this id was to fill."""
    row = connection.execute(
        "SELECT s.key FROM jobs j JOIN collections s ON s.standby_of = j.collection_key "
        "WHERE j.id = ? AND j.kind = ? AND s.is_building AND s.dropped_at IS NULL",
        (job_id, JobKind.REINDEX),
    ).fetchone()
    if row is not None:
        _drop(connection, row["key"])


def read_change_mark(connection: sqlite3.Connection, key: int) -> ChangeMark:
    row = connection.execute(
        "SELECT max_document_key, metadata_version, max(tombstones_pruned, coalesce("
        "(SELECT max(sequence) FROM tombstones WHERE collection_key = c.key), 0)) AS tombstone "
        "FROM collections c WHERE key = ?",
        (key,),
    ).fetchone()
    if row is None:
        raise CollectionNotFound("the collection has been dropped")
    return ChangeMark(row["max_document_key"], row["tombstone"], row["metadata_version"])


def read_collection(row: sqlite3.Row) -> Collection:
    return Collection(
        key=row["key"],
        name=row["name"],
        settings=_settings(from_json(row["settings"])),
        fingerprint=row["fingerprint"],
        model=row["model"],
        created_at=from_us(row["created_at"]),
        search=_search_settings(from_json(row["search_settings"])),
        standby_of=row["standby_of_name"],
        is_building=bool(row["is_building"]),
    )


def _settings(stored: Mapping[str, Any]) -> CollectionSettings:
    """Collections of earlier versions have nothing to say of their index."""
    try:
        index = IndexSettings(**stored.get("index", {}))
        return CollectionSettings(SplitterSettings(**stored["splitter"]), index)
    except (KeyError, TypeError) as error:
        raise StorageDamaged(f"the settings of a collection are damaged: {error}") from error


def _search_settings(stored: Mapping[str, Any]) -> SearchSettings:
    """What was not stored has its default: nothing ever was, or it came with a later version."""
    try:
        return SearchSettings(Fusion(**stored.get("fusion", {})), stored.get("candidates"))
    except TypeError as error:
        raise StorageDamaged(f"the search settings of a collection are damaged: {error}") from error


def _require_droppable(connection: sqlite3.Connection, name: str) -> Collection:
    collection = require_collection(connection, name)
    if collection.name != name:
        raise NameTaken(
            f"{name!r} is an alias, of the collection {collection.name!r}; delete the alias, or the "
            "collection by its own name"
        )
    aliases = connection.execute(
        "SELECT name FROM aliases WHERE collection_key = ? ORDER BY name", (collection.key,)
    ).fetchall()
    if aliases:
        raise CollectionInUse(
            f"aliases lead to the collection {name!r}: {', '.join(alias for (alias,) in aliases)}; "
            "point them at another collection or delete them first"
        )
    return collection


def _drop(connection: sqlite3.Connection, key: int) -> None:
    """Of a standby nothing but its rows is left: its place is free."""
    connection.execute(
        "UPDATE collections SET dropped_at = ?, standby_of = NULL WHERE key = ?", (now_us(), key)
    )
    connection.execute(
        "UPDATE jobs SET state = 'cancelled', finished_at = ?, worker = NULL, leased_until = NULL "
        "WHERE collection_key = ? AND state IN ('queued', 'running')",
        (now_us(), key),
    )


def _cancel_reindex(connection: sqlite3.Connection, *, standby: Collection) -> None:
    connection.execute(
        "UPDATE jobs SET state = 'cancelled', finished_at = ?, worker = NULL, leased_until = NULL "
        "WHERE collection_key = (SELECT standby_of FROM collections WHERE key = ?) AND kind = ? "
        "AND state IN ('queued', 'running')",
        (now_us(), standby.key, JobKind.REINDEX),
    )


def _require_same(present: Collection, settings: CollectionSettings, *, fingerprint: str, model: str) -> None:
    if present.settings != settings:
        raise CollectionExists(
            f"collection {present.name!r} exists with {present.settings}, not {settings}; "
            "use another name or drop it first"
        )
    if present.fingerprint != fingerprint:
        raise CollectionExists(
            f"collection {present.name!r} was made by {present.model} ({present.fingerprint}), "
            f"not by {model} ({fingerprint}); use another name or drop it first"
        )


def _purge(connection: sqlite3.Connection, key: int, *, limit: int) -> int:
    """Delete about `limit` documents with passages, metadata values, inputs and outcomes of a dropped one.

    Returns how many; fewer than `limit`: nothing is left of it.
    """
    n_deleted = _purge_documents(connection, key, limit=limit)
    for statement in (
        "DELETE FROM metadata_values WHERE (field_key, kind, value, document_key) IN ("
        "SELECT v.field_key, v.kind, v.value, v.document_key FROM metadata_fields f "
        "JOIN metadata_values v ON v.field_key = f.key WHERE f.collection_key = ? LIMIT ?)",
        "DELETE FROM job_inputs WHERE key IN (SELECT i.key FROM jobs j JOIN job_inputs i "
        "ON i.job_key = j.key WHERE j.collection_key = ? LIMIT ?)",
        "DELETE FROM outcomes WHERE (job_key, ordinal) IN (SELECT o.job_key, o.ordinal FROM jobs j "
        "JOIN outcomes o ON o.job_key = j.key WHERE j.collection_key = ? LIMIT ?)",
    ):
        n_deleted += connection.execute(statement, (key, max(0, limit - n_deleted))).rowcount
    if n_deleted < limit:
        connection.execute("DELETE FROM metadata_fields WHERE collection_key = ?", (key,))
        connection.execute("DELETE FROM jobs WHERE collection_key = ?", (key,))
        connection.execute("DELETE FROM tombstones WHERE collection_key = ?", (key,))
        connection.execute("DELETE FROM generations WHERE collection_key = ?", (key,))
        connection.execute("DELETE FROM collections WHERE key = ?", (key,))
    return n_deleted


def _purge_documents(connection: sqlite3.Connection, key: int, *, limit: int) -> int:
    """Whole documents until `limit` documents and passages; a book counts as its passages, not as one."""
    n_deleted, document_keys = 0, []
    for document_key, n_passages in connection.execute(
        "SELECT key, n_passages FROM documents WHERE collection_key = ? LIMIT ?", (key, limit)
    ):
        n_deleted += 1 + n_passages
        document_keys.append((document_key,))
        if n_deleted >= limit:
            break
    connection.executemany("DELETE FROM documents WHERE key = ?", document_keys)
    return n_deleted
