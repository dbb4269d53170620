"""Waiting for a job without holding a thread: RFC 7240's `Prefer: wait`, and the stream of events."""

import re
import time
from collections.abc import AsyncIterator

import anyio
from anyio.to_thread import run_sync
from starlette.requests import Request

from app.domain import Job
from app.storage.rows import Rows

POLL_S = 0.01
"""Asking whether anything was committed costs microseconds."""
MAX_WAIT_S = 60.0
KEEP_ALIVE_S = 15.0
PREFERENCE = re.compile(r"\s*(wait|respond-async)\s*(?:=\s*\"?(\d{1,9})\"?)?\s*", re.IGNORECASE)


def preferred_wait_s(request: Request) -> float | None:
    """Seconds from the `Prefer` header; None if it names none. What cannot be read is no preference."""
    for preference in request.headers.get("prefer", "").split(","):
        found = PREFERENCE.fullmatch(preference.partition(";")[0])
        if found and found[1].lower() == "respond-async":
            return 0.0
        if found and found[2]:
            return min(float(found[2]), MAX_WAIT_S)
    return None


async def wait_for_job(rows: Rows, job: Job, request: Request, *, wait_s: float) -> Job:
    """The job when it is final, or as it is after `wait_s`, or when the client has gone."""
    until = time.monotonic() + wait_s
    async for changed in _changes(rows, job):
        if changed is not None:
            job = changed
        if job.state.is_final or time.monotonic() >= until or await request.is_disconnected():
            break
    return job


async def job_progress(rows: Rows, job: Job) -> AsyncIterator[Job | None]:
    """The job now and whenever it changed, until it is final; None when nothing happened for long."""
    last_sent = time.monotonic()
    async for changed in _changes(rows, job):
        if changed is not None:
            yield changed
        elif time.monotonic() - last_sent > KEEP_ALIVE_S:
            yield None
        else:
            continue
        last_sent = time.monotonic()
        if changed is not None and changed.state.is_final:
            return


async def _changes(rows: Rows, job: Job) -> AsyncIterator[Job | None]:
    """At every look: the job if it changed since the last one, else None. Looks as long as it is asked to."""
    version: int | None = None
    last: Job | None = None
    while True:
        changed: Job | None = None
        if (now := rows.data_version()) != version:
            version = now
            seen = await run_sync(rows.job, job.id)
            if seen != last:
                changed = last = seen
        yield changed
        await anyio.sleep(POLL_S)
