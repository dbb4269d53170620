"""Jobs: requests to write, stored before they are acknowledged and worked off in order."""

import datetime as dt
import json
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from app.domain import WRITES, Job, JobInput, JobKind, JobState, Outcome, OutcomeStatus
from app.errors import BadCursor, CollectionNotFound, Conflict, JobFinished, JobNotFound
from app.storage.rows import ClaimedJob
from app.storage.sqlite.collections import COLLECTION, drop_unfinished_standby, read_collection
from app.storage.sqlite.connection import Database, transaction
from app.storage.sqlite.reports import insert_report, store_result
from app.storage.sqlite.times import from_us, now_us, to_us
from app.storage.sqlite.values import from_json, printable

JOB = (
    "SELECT j.*, c.name AS collection FROM jobs j "
    "JOIN collections c ON c.key = j.collection_key AND c.dropped_at IS NULL "
)


class JobRows:
    _database: Database

    def submit_job(
        self, collection_key: int, kind: JobKind, inputs: Iterable[JobInput], *, request: str | None = None
    ) -> Job:
        """Inputs gather in a temporary table first, so a slow stream keeps no other writer waiting."""
        job_id = secrets.token_hex(16)
        with self._database.scratch() as connection:
            n_inputs = _gather(connection, inputs)
            try:
                with self._database.exclusively(), transaction(connection):
                    job_key = _insert_job(connection, job_id, collection_key, kind, n_inputs)
                    if request is not None:
                        insert_report(connection, job_key, request)
                    return require_job(connection, job_id)
            finally:
                connection.execute("DELETE FROM temp.arriving")

    def job(self, job_id: str) -> Job:
        with self._database.read() as connection:
            return require_job(connection, job_id)

    def jobs(
        self,
        *,
        after: str | None = None,
        limit: int = 100,
        state: JobState | None = None,
        kind: JobKind | None = None,
        collection_key: int | None = None,
        collections: Iterable[str] | None = None,
    ) -> Sequence[Job]:
        wanted = {"state": state, "kind": kind, "collection_key": collection_key}
        conditions = "".join(
            f"j.{column} = :{column} AND " for column, value in wanted.items() if value is not None
        )
        names = None if collections is None else json.dumps(list(collections))
        if names is not None:
            conditions += "c.name IN (SELECT value FROM json_each(:names)) AND "
        with self._database.read() as connection:
            rows = connection.execute(
                f"{JOB} WHERE {conditions} j.key < :before ORDER BY j.key DESC LIMIT :limit",
                {**wanted, "names": names, "before": _key_of_cursor(connection, after), "limit": limit},
            )
            return [_read_job(row) for row in rows]

    def outcomes(self, job_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[Outcome]:
        with self._database.read() as connection:
            require_job(connection, job_id)
            rows = connection.execute(
                "SELECT o.* FROM outcomes o JOIN jobs j ON j.key = o.job_key "
                "WHERE j.id = ? AND o.ordinal > ? ORDER BY o.ordinal LIMIT ?",
                (job_id, after, limit),
            )
            return [_read_outcome(row) for row in rows]

    def cancel_job(self, job_id: str) -> Job:
        with self._database.write() as connection:
            job = require_job(connection, job_id)
            if job.state.is_final:
                raise JobFinished(f"job {job_id} is {job.state.value} and cannot be cancelled any more")
            finish(connection, job_id, JobState.CANCELLED, error=None)
            return require_job(connection, job_id)

    def forget_job(self, job_id: str) -> None:
        with self._database.write() as connection:
            require_job(connection, job_id)
            drop_unfinished_standby(connection, job_id)
            connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def claim_job(
        self, worker: str, *, lease_s: float, kinds: Iterable[JobKind] | None = None
    ) -> ClaimedJob | None:
        """An idle worker may ask often: the file is locked only when there is something to claim."""
        among = list(JobKind if kinds is None else kinds)
        with self._database.read() as connection:
            if _claimable(connection, among) is None:
                return None
        with self._database.write() as connection:
            job_id = _claimable(connection, among)
            if job_id is None:
                return None
            now = now_us()
            connection.execute(
                "UPDATE jobs SET state = 'running', worker = ?, leased_until = ?, "
                "attempts = attempts + 1, started_at = coalesce(started_at, ?) WHERE id = ?",
                (worker, now + round(lease_s * 1e6), now, job_id),
            )
            job = require_job(connection, job_id)
            row = connection.execute(
                "SELECT collection_key, attempts FROM jobs WHERE id = ?", (job_id,)
            ).fetchone()
            collection = connection.execute(
                f"{COLLECTION} WHERE c.key = ?", (row["collection_key"],)
            ).fetchone()
            return ClaimedJob(
                job=job,
                collection=read_collection(collection),
                n_done=job.n_done,
                attempts=row["attempts"],
            )

    def job_inputs(self, job_id: str, *, start: int, limit: int) -> Sequence[JobInput]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT i.ordinal, i.body, i.name, i.media_type FROM job_inputs i "
                "JOIN jobs j ON j.key = i.job_key WHERE j.id = ? AND i.ordinal >= ? "
                "ORDER BY i.ordinal LIMIT ?",
                (job_id, start, limit),
            )
            return [JobInput(*row) for row in rows]

    def renew_lease(self, job_id: str, worker: str, *, lease_s: float) -> bool:
        with self._database.write() as connection:
            renewed = connection.execute(
                "UPDATE jobs SET leased_until = ? WHERE id = ? AND worker = ? AND state = 'running'",
                (now_us() + round(lease_s * 1e6), job_id, worker),
            )
            return renewed.rowcount == 1

    def release_job(self, job_id: str, worker: str) -> None:
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'queued', worker = NULL, leased_until = NULL, "
                "attempts = max(attempts - 1, 0) WHERE id = ? AND worker = ? AND state = 'running'",
                (job_id, worker),
            )

    def record_progress(self, job_id: str, worker: str, n_done: int) -> None:
        with self._database.write() as connection:
            job = require_leased(connection, job_id, worker)
            if not 0 <= n_done <= job["n_inputs"]:
                raise ValueError(f"{n_done} of {job['n_inputs']} inputs cannot be done")
            connection.execute("UPDATE jobs SET n_done = ? WHERE key = ?", (n_done, job["key"]))

    def finish_job(
        self,
        job_id: str,
        worker: str,
        state: JobState,
        *,
        error: str | None = None,
        result: str | None = None,
    ) -> None:
        if not state.is_final:
            raise ValueError(f"{state.value} is not a final state")
        with self._database.write() as connection:
            job = require_leased(connection, job_id, worker)
            finish(connection, job_id, state, error=error)
            if result is not None:
                store_result(connection, job["key"], result)

    def job_counts(self) -> Mapping[JobState, int]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT j.state, count(*) FROM jobs j "
                "JOIN collections c ON c.key = j.collection_key AND c.dropped_at IS NULL GROUP BY j.state"
            )
            return {JobState(state): n_jobs for state, n_jobs in rows}

    def n_unfinished_jobs(self) -> int:
        with self._database.read() as connection:
            n_jobs: int = connection.execute(
                "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
            ).fetchone()[0]
            return n_jobs

    def prune_jobs(self, *, finished_before: dt.datetime, limit: int = 100) -> int:
        with self._database.write() as connection:
            pruned = connection.execute(
                "DELETE FROM jobs WHERE key IN (SELECT key FROM jobs WHERE finished_at < ? "
                "AND NOT EXISTS (SELECT 1 FROM job_reports WHERE job_key = key) ORDER BY key LIMIT ?)",
                (to_us(finished_before), limit),
            )
            return pruned.rowcount


def require_leased(
    connection: sqlite3.Connection, job_id: str, worker: str, *, collection_key: int | None = None
) -> sqlite3.Row:
    """The job's row. An expired lease that nobody has taken over still is the worker's.

    Raises Conflict.
    """
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM jobs WHERE id = ? AND worker = ? AND state = 'running'", (job_id, worker)
    ).fetchone()
    if row is None:
        raise Conflict(f"job {job_id} is no longer leased to {worker}: it was cancelled or taken over")
    if collection_key not in (None, row["collection_key"]):
        raise ValueError(f"job {job_id} is of collection {row['collection_key']}, not {collection_key}")
    return row


def store_outcomes(connection: sqlite3.Connection, job: sqlite3.Row, outcomes: Sequence[Outcome]) -> None:
    """Raises ValueError if they do not go on where the stored ones end: a resume would skip inputs."""
    if not outcomes:
        return
    counts = from_json(job["counts"])
    for ordinal, outcome in enumerate(outcomes, job["n_done"]):
        if outcome.ordinal != ordinal or ordinal >= job["n_inputs"]:
            raise ValueError(f"outcome {outcome.ordinal} given where {ordinal} of {job['n_inputs']} is due")
        counts[outcome.status] = counts.get(outcome.status, 0) + 1
    connection.executemany(
        "INSERT INTO outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                job["key"],
                outcome.ordinal,
                printable(outcome.document_id),
                outcome.status,
                outcome.n_documents,
                outcome.n_passages,
                outcome.n_tokens,
                printable(outcome.error),
                json.dumps([printable(warning) for warning in outcome.warnings]),
            )
            for outcome in outcomes
        ),
    )
    connection.execute(
        "UPDATE jobs SET n_done = n_done + ?, counts = ?, attempts = 0 WHERE key = ?",
        (len(outcomes), json.dumps(counts), job["key"]),
    )


def _gather(connection: sqlite3.Connection, inputs: Iterable[JobInput]) -> int:
    """Fill the connection's temporary table; returns the number of inputs."""
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS arriving "
        "(ordinal INTEGER PRIMARY KEY, name TEXT, media_type TEXT, body BLOB NOT NULL)"
    )
    connection.execute("BEGIN")
    try:
        connection.execute("DELETE FROM temp.arriving")
        connection.executemany("INSERT INTO temp.arriving VALUES (?, ?, ?, ?)", _in_order(inputs))
        n_inputs: int = connection.execute("SELECT count(*) FROM temp.arriving").fetchone()[0]
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return n_inputs


def _in_order(inputs: Iterable[JobInput]) -> Iterable[tuple[int, str | None, str | None, bytes]]:
    for ordinal, job_input in enumerate(inputs):
        if job_input.ordinal != ordinal:
            raise ValueError(f"input {job_input.ordinal} given where {ordinal} is due")
        yield ordinal, printable(job_input.name), printable(job_input.media_type), job_input.body


def _insert_job(
    connection: sqlite3.Connection, job_id: str, collection_key: int, kind: JobKind, n_inputs: int
) -> int:
    """Returns its key."""
    inserted = connection.execute(
        "INSERT INTO jobs (id, collection_key, kind, state, n_inputs, created_at) "
        "SELECT ?, iif(?, coalesce(standby_of, key), key), ?, 'queued', ?, ? FROM collections "
        "WHERE key = ? AND dropped_at IS NULL",
        (job_id, kind in WRITES, kind, n_inputs, now_us(), collection_key),
    )
    if inserted.rowcount == 0:
        raise CollectionNotFound("the collection has been dropped")
    connection.execute(
        "INSERT INTO job_inputs (job_key, ordinal, name, media_type, body) "
        "SELECT ?, ordinal, name, media_type, body FROM temp.arriving ORDER BY ordinal",
        (inserted.lastrowid,),
    )
    assert inserted.lastrowid is not None
    return inserted.lastrowid


def finish(connection: sqlite3.Connection, job_id: str, state: JobState, *, error: str | None) -> None:
    """A standby that will not be filled any more is dropped."""
    connection.execute(
        "UPDATE jobs SET state = ?, finished_at = ?, error = ?, worker = NULL, leased_until = NULL "
        "WHERE id = ?",
        (state, now_us(), printable(error), job_id),
    )
    connection.execute(
        "DELETE FROM job_inputs WHERE job_key = (SELECT key FROM jobs WHERE id = ?)", (job_id,)
    )
    if state is not JobState.SUCCEEDED:
        drop_unfinished_standby(connection, job_id)


def _claimable(connection: sqlite3.Connection, kinds: Sequence[JobKind]) -> str | None:
    row = connection.execute(
        "SELECT j.id FROM jobs j INDEXED BY jobs_unfinished WHERE j.state IN ('queued', 'running') "
        "AND (j.state = 'queued' OR j.leased_until <= ?) "
        "AND j.kind IN (SELECT value FROM json_each(?)) ORDER BY j.key LIMIT 1",
        (now_us(), json.dumps(kinds)),
    ).fetchone()
    return None if row is None else row["id"]


def _key_of_cursor(connection: sqlite3.Connection, after: str | None) -> int:
    if after is None:
        return 2**63 - 1
    row = connection.execute("SELECT key FROM jobs WHERE id = ?", (after,)).fetchone()
    if row is None:
        raise BadCursor(f"there is no job {after!r} to list from", where=("after",))
    key: int = row["key"]
    return key


def require_job(connection: sqlite3.Connection, job_id: str) -> Job:
    row = connection.execute(JOB + "WHERE j.id = ?", (job_id,)).fetchone()
    if row is None:
        raise JobNotFound(f"there is no job {job_id!r}")
    return _read_job(row)


def _read_job(row: sqlite3.Row) -> Job:
    def moment(column: str) -> dt.datetime | None:
        return None if row[column] is None else from_us(row[column])

    return Job(
        id=row["id"],
        kind=JobKind(row["kind"]),
        collection=row["collection"],
        state=JobState(row["state"]),
        n_inputs=row["n_inputs"],
        n_done=row["n_done"],
        counts={OutcomeStatus(status): n for status, n in from_json(row["counts"]).items()},
        created_at=from_us(row["created_at"]),
        started_at=moment("started_at"),
        finished_at=moment("finished_at"),
        error=row["error"],
    )


def _read_outcome(row: sqlite3.Row) -> Outcome:
    return Outcome(
        ordinal=row["ordinal"],
        document_id=row["document_id"],
        status=OutcomeStatus(row["status"]),
        n_documents=row["n_documents"],
        n_passages=row["n_passages"],
        n_tokens=row["n_tokens"],
        error=row["error"],
        warnings=tuple(from_json(row["warnings"])),
    )
