"""Looking for what is wrong in the file of the rows, on a connection of its own that only reads."""

import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from app.domain.health import Fault, Remedy
from app.errors import StorageDamaged
from app.storage.sqlite.connection import BUSY_TIMEOUT_S
from app.storage.sqlite.counting import INCOMPLETE, MISCOUNTED, SPENT_KEYS
from app.storage.sqlite.failures import translated
from app.storage.sqlite.metadata import is_indexed
from app.storage.sqlite.migrations import APPLICATION_ID, MIGRATIONS, newest_schema
from app.storage.sqlite.times import now_us

MAX_SHOWN = 20
INSTRUCTIONS = 50_000
"""Of SQLite's machine between two looks at the clock: some milliseconds."""
GRACE_S = 5.0
"""A live worker takes over a job whose lease ran out within about a second."""
DERIVED = frozenset({"passages", "passage_vectors", "document_vectors"})
"""Tables whose orphans can be deleted: they are made from texts."""
FROM_BACKUP = "restore a backup"


class OutOfTime(Exception):
    pass


class Examination:
    """Each check is one snapshot, so it may run beside all others. Not safe for several threads.

    Checks raise:
        OutOfTime: the deadline has passed; what was found until then counts.
        StorageDamaged: SQLite itself cannot go on.
    """

    def __init__(self, path: Path, *, deadline: float = math.inf) -> None:
        """`deadline` as `time.monotonic` counts."""
        self._path = path
        self.deadline = deadline
        with translated(path):
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=ro",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
        self._connection.row_factory = sqlite3.Row
        self._connection.set_progress_handler(self._is_late, INSTRUCTIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def require_time(self) -> None:
        """Raises OutOfTime."""
        if self._is_late():
            raise OutOfTime

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        self.require_time()
        try:
            with translated(self._path):
                self._connection.execute("BEGIN")
                try:
                    yield self._connection
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                raise OutOfTime from error
            # Our own statements are right, so what they speak of is not there.
            raise StorageDamaged(f"{self._path} has not the tables that it should have: {error}") from error

    @cached_property
    def version(self) -> int:
        with self.snapshot() as connection:
            version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version

    def schema(self) -> Iterator[Fault]:
        where = str(self._path)
        with self.snapshot() as connection:
            application_id = connection.execute("PRAGMA application_id").fetchone()[0]
            present = {(row[0], row[1]) for row in connection.execute("SELECT type, name FROM sqlite_schema")}
        for kind, name in sorted(present):
            if kind in ("trigger", "view"):
                yield Fault(f"the {kind} {name} is not Bifocal's; {FROM_BACKUP}", where)
        if application_id != APPLICATION_ID:
            yield Fault(f"this is no store of Bifocal; {FROM_BACKUP}", where)
        elif self.version > len(MIGRATIONS):
            yield Fault(
                f"schema {self.version} was written by a newer version of Bifocal, this one knows up to "
                f"{len(MIGRATIONS)}; use the version that wrote it, or a newer one",
                where,
            )
        elif self.version == len(MIGRATIONS):
            for kind, name in sorted(newest_schema() - present):
                yield Fault(f"the {kind} {name} is missing; {FROM_BACKUP}", where)

    def integrity(self) -> Iterator[Fault]:
        """SQLite's own look at every page."""
        with self.snapshot() as connection:
            for (line,) in connection.execute(f"PRAGMA quick_check({MAX_SHOWN})"):
                if line != "ok":
                    yield Fault(f"{line}; {FROM_BACKUP}", str(self._path))

    def references(self) -> Iterator[Fault]:
        """Rows that refer to others which are not there."""
        broken: dict[tuple[str, str], int] = {}
        with self.snapshot() as connection:
            for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
                broken[table, parent] = broken.get((table, parent), 0) + 1
            (n_indexed,) = connection.execute(
                "SELECT count(*) FROM metadata_values v JOIN metadata_fields f ON f.key = v.field_key "
                "JOIN collections c ON c.key = f.collection_key AND c.dropped_at IS NULL "
                "WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = v.document_key)"
            ).fetchone()
        if n_indexed:
            broken["metadata_values", "documents"] = n_indexed
        for (table, parent), n_rows in sorted(broken.items()):
            is_derived = table in DERIVED or table == "metadata_values"
            what = f"{n_rows} rows of {table} belong to none of {parent}"
            yield Fault(
                what if is_derived else f"{what}; {FROM_BACKUP}",
                str(self._path),
                Remedy.ORPHANS if is_derived else None,
            )

    def counters(self) -> Iterator[Fault]:
        """What collections say of themselves, beside what they have."""
        with self.snapshot() as connection:
            for row in connection.execute(MISCOUNTED):
                wrong = [
                    f"{name} is {row[name]} and should be {row[f'counted_{name}']}"
                    for name in ("n_documents", "n_passages", "n_tokens", "size_bytes")
                    if row[name] != row[f"counted_{name}"]
                ]
                wrong += [
                    f"{name} is {row[name]}, below a key in use"
                    for name in ("max_document_key", "max_passage_key")
                    if row[name] < row[f"used_{name}"]
                ]
                if wrong:
                    yield Fault(
                        "; ".join(wrong),
                        f"collection {row['name']}",
                        Remedy.COUNTS,
                        collection_key=row["key"],
                    )
            for noun, key, used in connection.execute(SPENT_KEYS):
                what = f"the last key of a {noun} is {used}, but {key} is on record as the last"
                yield Fault(what, str(self._path), Remedy.COUNTS)

    def completeness(self) -> Iterator[Fault]:
        """Documents without all of their passages and vectors."""
        with self.snapshot() as connection:
            for what, query in INCOMPLETE:
                found: dict[tuple[int, str], list[int]] = {}
                for collection_key, name, document_key in connection.execute(query):
                    found.setdefault((collection_key, name), []).append(document_key)
                for (collection_key, name), keys in found.items():
                    yield Fault(
                        f"{len(keys)} documents {what}: {shown_ids(connection, keys)}",
                        f"collection {name}",
                        Remedy.DOCUMENTS,
                        collection_key=collection_key,
                        keys=tuple(keys),
                    )

    def metadata(self) -> Iterator[Fault]:
        """The index by which filters find documents, beside what their metadata say."""
        with self.snapshot() as connection:
            for key, name in connection.execute(
                "SELECT key, name FROM collections WHERE dropped_at IS NULL"
            ).fetchall():
                if not is_indexed(connection, key):
                    yield Fault(
                        "the index of metadata is not what the documents' metadata say",
                        f"collection {name}",
                        Remedy.METADATA,
                        collection_key=key,
                    )

    def leases(self) -> Iterator[Fault]:
        """Jobs that run under a lease that ran out, and that nobody has taken over."""
        with self.snapshot() as connection:
            for row in connection.execute(
                "SELECT id, worker, leased_until FROM jobs WHERE state = 'running' AND leased_until < ?",
                (now_us() - round(GRACE_S * 1e6),),
            ):
                silent_s = (now_us() - row["leased_until"]) / 1e6
                yield Fault(
                    f"the lease of the worker {row['worker']} ran out {silent_s:.0f} s ago and nobody has "
                    "taken the job over; the next worker that is started does",
                    f"job {row['id']}",
                    Remedy.JOB,
                    is_warning=True,
                )

    def collection_keys(self) -> frozenset[int]:
        """Dropped ones included, as long as anything is left of them."""
        with self.snapshot() as connection:
            return frozenset(key for (key,) in connection.execute("SELECT key FROM collections"))

    def _is_late(self) -> bool:
        return time.monotonic() > self.deadline


def shown_ids(connection: sqlite3.Connection, document_keys: Sequence[int], *, limit: int = 3) -> str:
    """The first ones, for a message."""
    ids = []
    for key in document_keys[:limit]:
        row = connection.execute("SELECT id FROM documents WHERE key = ?", (key,)).fetchone()
        ids.append(repr(row[0]) if row else f"key {key}")
    return ", ".join(ids) + (" and others" if len(document_keys) > limit else "")
