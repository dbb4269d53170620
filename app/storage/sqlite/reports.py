"""Reports of jobs: a request and its result, both JSON, kept as long as the job."""

import sqlite3

from app.errors import JobNotFound
from app.storage.rows import JobReport
from app.storage.sqlite.connection import Database

REPORTS_4 = (
    # A table of its own: listing jobs must not read results.
    """
    CREATE TABLE job_reports (
        job_key INTEGER PRIMARY KEY REFERENCES jobs (key) ON DELETE CASCADE,
        request TEXT NOT NULL,
        result TEXT
    )
    """,
)


class ReportRows:
    _database: Database

    def job_report(self, job_id: str) -> JobReport:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT r.request, r.result FROM job_reports r JOIN jobs j ON j.key = r.job_key "
                "JOIN collections c ON c.key = j.collection_key AND c.dropped_at IS NULL WHERE j.id = ?",
                (job_id,),
            ).fetchone()
        if row is None:
            raise JobNotFound(f"there is no job {job_id!r} with a report")
        return JobReport(row["request"], row["result"])


def insert_report(connection: sqlite3.Connection, job_key: int, request: str) -> None:
    connection.execute("INSERT INTO job_reports (job_key, request) VALUES (?, ?)", (job_key, request))


def store_result(connection: sqlite3.Connection, job_key: int, result: str) -> None:
    """Raises ValueError for a job without a request."""
    stored = connection.execute("UPDATE job_reports SET result = ? WHERE job_key = ?", (result, job_key))
    if stored.rowcount == 0:
        raise ValueError("a job that was submitted without a request has no result")
