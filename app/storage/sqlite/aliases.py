"""Aliases: rows that name a collection by its key, so that a name always leads to one that exists."""

import sqlite3
from collections.abc import Sequence

from app.domain import Alias
from app.errors import AliasNotFound, CollectionInUse, CollectionNotFound, NameTaken
from app.storage.sqlite.connection import Database
from app.storage.sqlite.times import from_us, now_us

ALIASES_7 = (
    """
    CREATE TABLE aliases (
        name TEXT PRIMARY KEY,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX aliases_of_collection ON aliases (collection_key)",
)
ALIAS = "SELECT a.*, c.name AS collection FROM aliases a JOIN collections c ON c.key = a.collection_key "


class AliasRows:
    _database: Database

    def put_alias(self, name: str, collection: str) -> tuple[Alias, bool]:
        with self._database.write() as connection:
            if _key_of(connection, name) is not None:
                raise NameTaken(f"{name!r} is a collection; an alias needs a name of its own")
            key = _key_of(connection, collection)
            if key is None:
                raise CollectionNotFound(_why_not(connection, collection))
            _require_no_standby(connection, key)
            was_created = _find(connection, name) is None
            connection.execute(
                "INSERT INTO aliases VALUES (:name, :key, :now, :now) ON CONFLICT (name) DO UPDATE "
                "SET collection_key = :key, updated_at = :now WHERE collection_key != :key",
                {"name": name, "key": key, "now": now_us()},
            )
            return _require(connection, name), was_created

    def alias(self, name: str) -> Alias:
        with self._database.read() as connection:
            return _require(connection, name)

    def aliases(self) -> Sequence[Alias]:
        with self._database.read() as connection:
            return [_read(row) for row in connection.execute(f"{ALIAS} ORDER BY a.name")]

    def drop_alias(self, name: str) -> None:
        with self._database.write() as connection:
            _require(connection, name)
            connection.execute("DELETE FROM aliases WHERE name = ?", (name,))


def _key_of(connection: sqlite3.Connection, collection: str) -> int | None:
    row = connection.execute(
        "SELECT key FROM collections WHERE name = ? AND dropped_at IS NULL", (collection,)
    ).fetchone()
    return None if row is None else row["key"]


def _require_no_standby(connection: sqlite3.Connection, key: int) -> None:
    row = connection.execute(
        "SELECT s.name, l.name FROM collections s JOIN collections l ON l.key = s.standby_of WHERE s.key = ?",
        (key,),
    ).fetchone()
    if row is not None:
        raise CollectionInUse(
            f"{row[0]!r} is the standby of {row[1]!r}; lead the alias to {row[1]!r}, and roll that back if "
            "need be"
        )


def _why_not(connection: sqlite3.Connection, name: str) -> str:
    alias = _find(connection, name)
    if alias is None:
        return f"there is no collection {name!r} to point an alias at"
    return f"{name!r} is an alias itself; name its collection, {alias.collection!r}"


def _require(connection: sqlite3.Connection, name: str) -> Alias:
    alias = _find(connection, name)
    if alias is None:
        raise AliasNotFound(f"there is no alias {name!r}")
    return alias


def _find(connection: sqlite3.Connection, name: str) -> Alias | None:
    row = connection.execute(f"{ALIAS} WHERE a.name = ?", (name,)).fetchone()
    return None if row is None else _read(row)


def _read(row: sqlite3.Row) -> Alias:
    return Alias(row["name"], row["collection"], from_us(row["created_at"]), from_us(row["updated_at"]))
