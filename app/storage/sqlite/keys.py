"""Keys of callers: only digests of their secrets are here."""

import json
import sqlite3
from collections.abc import Sequence

from app.errors import Conflict, KeyNotFound
from app.keys import ApiKey, Scope, StoredKey
from app.storage.sqlite.connection import Database
from app.storage.sqlite.times import from_us, now_us, to_us
from app.storage.sqlite.values import from_json

API_KEYS_6 = (
    """
    CREATE TABLE api_keys (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        digest BLOB NOT NULL,
        scopes TEXT NOT NULL,
        collections TEXT,
        created_at INTEGER NOT NULL,
        revoked_at INTEGER
    )
    """,
)


class KeyRows:
    _database: Database

    def add_key(self, stored: StoredKey) -> None:
        key = stored.key
        collections = None if key.collections is None else json.dumps(sorted(key.collections))
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM api_keys WHERE id = ?", (key.id,)).fetchone():
                raise Conflict(f"there is a key {key.id!r} already")
            connection.execute(
                "INSERT INTO api_keys (id, name, digest, scopes, collections, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (
                    key.id,
                    key.name,
                    stored.digest,
                    json.dumps(sorted(key.scopes)),
                    collections,
                    to_us(key.created_at),
                ),
            )

    def api_keys(self) -> Sequence[StoredKey]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM api_keys ORDER BY key").fetchall()
        return [StoredKey(_read_key(row), row["digest"]) for row in rows]

    def revoke_key(self, key_id: str) -> ApiKey:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now_us(), key_id)
            )
            row = connection.execute("SELECT * FROM api_keys WHERE id = ?", (key_id,)).fetchone()
        if row is None:
            raise KeyNotFound(f"there is no key {key_id!r}; `bifocal keys list` shows all")
        return _read_key(row)


def _read_key(row: sqlite3.Row) -> ApiKey:
    return ApiKey(
        id=row["id"],
        name=row["name"],
        scopes=frozenset(Scope(scope) for scope in from_json(row["scopes"])),
        collections=None if row["collections"] is None else frozenset(from_json(row["collections"])),
        created_at=from_us(row["created_at"]),
        revoked_at=None if row["revoked_at"] is None else from_us(row["revoked_at"]),
    )
