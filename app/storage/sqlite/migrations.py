"""The schema as numbered migrations, only ever appended. Migration n brings `user_version` to n."""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache

from app.errors import Overloaded, SchemaTooNew, StorageDamaged
from app.storage.sqlite.aliases import ALIASES_7
from app.storage.sqlite.classifiers import CLASSIFIERS_5
from app.storage.sqlite.connection import Database
from app.storage.sqlite.keys import API_KEYS_6
from app.storage.sqlite.metadata import METADATA_2, backfill
from app.storage.sqlite.rebuilding import STANDBYS_8
from app.storage.sqlite.reports import REPORTS_4

APPLICATION_ID = 0x42494643
"""Marks the file as a store of Bifocal ("BIFC")."""

MIGRATION_TIMEOUT_S = 1800
"""How long a process waits while another one migrates: that takes about a minute per million documents."""

ROWS_1 = (
    # Counters are kept in the collection's row, in the transaction that changes what they count.
    """
    CREATE TABLE collections (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        settings TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        model TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        dropped_at INTEGER,
        dimensions INTEGER,
        n_documents INTEGER NOT NULL DEFAULT 0,
        n_passages INTEGER NOT NULL DEFAULT 0,
        n_tokens INTEGER NOT NULL DEFAULT 0,
        n_unknown_tokens INTEGER NOT NULL DEFAULT 0,
        size_bytes INTEGER NOT NULL DEFAULT 0,
        max_document_key INTEGER NOT NULL DEFAULT 0,
        max_passage_key INTEGER NOT NULL DEFAULT 0,
        tombstones_pruned INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE UNIQUE INDEX collections_live ON collections (name) WHERE dropped_at IS NULL",
    # Keys of documents and passages are taken from here in whole ranges, and so are never reused.
    "CREATE TABLE last_keys (noun TEXT PRIMARY KEY, key INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO last_keys VALUES ('document', 0), ('passage', 0)",
    """
    CREATE TABLE documents (
        key INTEGER PRIMARY KEY,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        id TEXT NOT NULL,
        title TEXT,
        metadata TEXT NOT NULL,
        page_starts TEXT NOT NULL,
        content_hash BLOB NOT NULL,
        n_passages INTEGER NOT NULL,
        n_tokens INTEGER NOT NULL,
        unknown_share REAL NOT NULL,
        size_bytes INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        UNIQUE (collection_key, id)
    )
    """,
    # UTF-8 in pieces of a fixed number of code points, so that a hit in a book does not read the book.
    # BLOB: a NUL would end a TEXT value in SQLite's own string functions.
    """
    CREATE TABLE texts (
        key INTEGER PRIMARY KEY,
        document_key INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
        start_char INTEGER NOT NULL,
        piece BLOB NOT NULL,
        UNIQUE (document_key, start_char)
    )
    """,
    """
    CREATE TABLE passages (
        key INTEGER PRIMARY KEY,
        document_key INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
        start_char INTEGER NOT NULL,
        end_char INTEGER NOT NULL,
        n_tokens INTEGER NOT NULL,
        page INTEGER
    )
    """,
    "CREATE INDEX passages_of_document ON passages (document_key)",
    # Vectors are little-endian float16, in tables of their own: reading text never pages through them.
    """
    CREATE TABLE passage_vectors (
        key INTEGER PRIMARY KEY REFERENCES passages (key) ON DELETE CASCADE,
        collection_key INTEGER NOT NULL,
        document_key INTEGER NOT NULL,
        vector BLOB NOT NULL
    )
    """,
    "CREATE INDEX passage_vectors_of_collection ON passage_vectors (collection_key, key)",
    """
    CREATE TABLE document_vectors (
        key INTEGER PRIMARY KEY REFERENCES documents (key) ON DELETE CASCADE,
        collection_key INTEGER NOT NULL,
        vector BLOB NOT NULL
    )
    """,
    "CREATE INDEX document_vectors_of_collection ON document_vectors (collection_key, key)",
    # One per dead revision of a document; its passages had consecutive keys.
    """
    CREATE TABLE tombstones (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        document_key INTEGER NOT NULL,
        first_passage_key INTEGER NOT NULL,
        n_passages INTEGER NOT NULL
    )
    """,
    "CREATE INDEX tombstones_of_collection ON tombstones (collection_key, sequence)",
    "INSERT INTO sqlite_sequence (name, seq) VALUES ('tombstones', 1)",  # 0 means: from the beginning
    # Superseded ones stay for a while: they tell which tombstones nobody needs any more.
    """
    CREATE TABLE generations (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        view TEXT NOT NULL,
        number INTEGER NOT NULL,
        max_key INTEGER NOT NULL,
        n_vectors INTEGER NOT NULL,
        checksum TEXT NOT NULL,
        details TEXT NOT NULL,
        is_current INTEGER NOT NULL,
        tombstone_sequence INTEGER NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX generations_current ON generations (collection_key, view) WHERE is_current",
    "CREATE INDEX generations_of_collection ON generations (collection_key, view, key)",
    """
    CREATE TABLE jobs (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        collection_key INTEGER NOT NULL REFERENCES collections (key),
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        n_inputs INTEGER NOT NULL,
        n_done INTEGER NOT NULL DEFAULT 0,
        counts TEXT NOT NULL DEFAULT '{}',
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        error TEXT,
        worker TEXT,
        leased_until INTEGER,
        attempts INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX jobs_of_collection ON jobs (collection_key)",
    "CREATE INDEX jobs_in_state ON jobs (state, key)",
    "CREATE INDEX jobs_unfinished ON jobs (key) WHERE state IN ('queued', 'running')",
    """
    CREATE TABLE job_inputs (
        key INTEGER PRIMARY KEY,
        job_key INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        name TEXT,
        media_type TEXT,
        body BLOB NOT NULL,
        UNIQUE (job_key, ordinal)
    )
    """,
    """
    CREATE TABLE outcomes (
        job_key INTEGER NOT NULL REFERENCES jobs (key) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        document_id TEXT,
        status TEXT NOT NULL,
        n_documents INTEGER NOT NULL,
        n_passages INTEGER NOT NULL,
        n_tokens INTEGER NOT NULL,
        error TEXT,
        warnings TEXT NOT NULL,
        PRIMARY KEY (job_key, ordinal)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE leases (
        noun TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        leased_until INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
)

Step = str | Callable[[sqlite3.Connection], None]
MIGRATIONS: Sequence[Sequence[Step]] = (
    ROWS_1,
    (*METADATA_2, backfill),
    ("ALTER TABLE collections ADD COLUMN search_settings TEXT NOT NULL DEFAULT '{}'",),
    REPORTS_4,
    CLASSIFIERS_5,
    API_KEYS_6,
    ALIASES_7,
    STANDBYS_8,
)


def migrate(database: Database) -> None:
    """Bring the file to the newest schema; several processes may try at once.

    Raises:
        SchemaTooNew: written by a newer version.
        StorageDamaged: a database of something else.
    """
    with database.read() as connection:
        version = _version(connection, database)
    if version == len(MIGRATIONS):
        return
    deadline = time.monotonic() + MIGRATION_TIMEOUT_S
    while True:
        try:
            with database.write() as connection:
                _migrate(connection, _version(connection, database))
        except Overloaded:
            if time.monotonic() > deadline:
                raise
        else:
            return


@cache
def newest_schema() -> frozenset[tuple[str, str]]:
    """(type, name) of every table and index of the newest schema."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        _migrate(connection, 0)
        return frozenset(
            (row[0], row[1]) for row in connection.execute("SELECT type, name FROM sqlite_schema")
        )


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    for steps in MIGRATIONS[version:]:
        for step in steps:
            if isinstance(step, str):
                connection.execute(step)
            else:
                step(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection, database: Database) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application_id: int = connection.execute("PRAGMA application_id").fetchone()[0]
    n_tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application_id != APPLICATION_ID and n_tables:
        raise StorageDamaged(f"{database.path} is an SQLite database, but not a store of Bifocal")
    if version > len(MIGRATIONS):
        raise SchemaTooNew(
            f"{database.path} has schema {version}; this version of Bifocal knows up to "
            f"{len(MIGRATIONS)}: use the version that wrote it, or a newer one"
        )
    return version
