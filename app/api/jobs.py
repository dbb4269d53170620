"""/v1/jobs, and how other endpoints answer with a job."""

from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic.json_schema import SkipJsonSchema

from app.api.access import reachable, reaches
from app.api.bodies import StrictRoute, json_response
from app.api.cursors import decode_cursor, encode_cursor
from app.api.middleware import public_url
from app.api.parameters import Cursor, JobId, Limit
from app.api.problems import responses
from app.api.schemas.jobs import (
    FinishedJobResponse,
    JobResponse,
    JobsResponse,
    OutcomeResponse,
    OutcomesResponse,
)
from app.api.state import Parts, parts
from app.api.waiting import job_progress, preferred_wait_s, wait_for_job
from app.domain import Job, JobInput, JobKind, JobState, Outcome
from app.errors import JobNotFound
from app.services.reindexing import require_own_documents
from app.storage.rows import Rows

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)

ACCEPTED: dict[str, Any] = {
    "description": "Stored durably; the job will be done. `Location` is where it can be followed.",
    "model": JobResponse,
    "headers": {"Location": {"description": "URL of the job.", "schema": {"type": "string"}}},
}
PREFER: dict[str, Any] = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`wait=N`: wait up to N seconds (at most 60) for the job (RFC 7240).",
    "schema": {"type": "string"},
    "example": "wait=10",
}


@router.get(
    "",
    operation_id="list_jobs",
    summary="List jobs",
    response_description="A page of jobs.",
    response_model=JobsResponse,
    responses=responses(),
)
def list_jobs(
    request: Request,
    limit: Limit = 100,
    cursor: Cursor = None,
    state: Annotated[JobState | SkipJsonSchema[None], Query(description="Only jobs in this state.")] = None,
) -> Response:
    """Jobs of all collections, newest first, a page at a time."""
    listing = f"jobs {state}"
    after = None if cursor is None else str(decode_cursor(listing, cursor))
    found = parts(request).rows.jobs(
        after=after, limit=limit + 1, state=state, collections=reachable(request)
    )
    page = found[:limit]
    more = encode_cursor(listing, page[-1].id) if len(found) > limit else None
    return json_response(
        JobsResponse(jobs=[JobResponse.model_validate(job) for job in page], next_cursor=more)
    )


@router.get(
    "/{job_id}",
    operation_id="get_job",
    summary="Show a job",
    response_description="The job.",
    response_model=JobResponse,
    responses=responses(404),
)
def get_job(request: Request, job_id: JobId) -> Response:
    """State and progress."""
    return json_response(JobResponse.model_validate(_visible(request, job_id)))


@router.delete(
    "/{job_id}",
    operation_id="cancel_job",
    summary="Cancel a job",
    response_description="The cancelled job.",
    response_model=JobResponse,
    responses=responses(404, 409, 507),
)
def cancel_job(request: Request, job_id: JobId) -> Response:
    """Stop it at its next write; what was written stays. A finished job is refused with 409."""
    job = _visible(request, job_id)
    return json_response(JobResponse.model_validate(parts(request).rows.cancel_job(job.id)))


@router.get(
    "/{job_id}/outcomes",
    operation_id="list_job_outcomes",
    summary="List what became of each input",
    response_description="A page of outcomes.",
    response_model=OutcomesResponse,
    responses=responses(404),
)
def list_outcomes(request: Request, job_id: JobId, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Outcomes so far, by position in the request, a page at a time."""
    listing = f"outcomes {job_id}"
    after = -1 if cursor is None else int(decode_cursor(listing, cursor))
    job = _visible(request, job_id)
    found = parts(request).rows.outcomes(job.id, after=after, limit=limit + 1)
    page = found[:limit]
    more = encode_cursor(listing, page[-1].ordinal) if len(found) > limit else None
    return json_response(
        OutcomesResponse(
            outcomes=[OutcomeResponse.model_validate(outcome) for outcome in page], next_cursor=more
        )
    )


@router.get(
    "/{job_id}/events",
    operation_id="stream_job_events",
    summary="Follow a job",
    response_class=StreamingResponse,
    responses={
        **responses(404),
        200: {
            "description": "Server-sent events `progress`, each with the job as JSON, and one `final` at "
            "the end.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
)
async def stream_events(request: Request, job_id: JobId) -> Response:
    """A server-sent event whenever the job moves on, until it is final."""
    job = await run_sync(_visible, request, job_id)
    return StreamingResponse(_events(parts(request).rows, job), media_type="text/event-stream")


def _visible(request: Request, job_id: str) -> Job:
    """Raises JobNotFound, also for a job of a collection that the caller's key does not reach."""
    job = parts(request).rows.job(job_id)
    if not reaches(request, job.collection):
        raise JobNotFound(f"there is no job {job_id!r}")
    return job


async def _events(rows: Rows, job: Job) -> AsyncIterator[str]:
    try:
        async for changed in job_progress(rows, job):
            if changed is None:
                yield ": still here\n\n"
                continue
            name = "final" if changed.state.is_final else "progress"
            yield f"event: {name}\ndata: {JobResponse.model_validate(changed).model_dump_json()}\n\n"
    except JobNotFound:  # its collection has been deleted
        yield "event: gone\ndata: {}\n\n"


def submitted(service: Parts, name: str, kind: JobKind, inputs: Iterable[JobInput]) -> Job:
    """A job of documents for a collection.

    Raises:
        CollectionNotFound
        CollectionInUse: it is a standby.
    """
    collection = service.rows.collection(name)
    require_own_documents(collection)
    return service.rows.submit_job(collection.key, kind, inputs)


def accepted(job: Job, request: Request) -> Response:
    """202 with the job and where to find it."""
    location = public_url(request.scope, f"/v1/jobs/{job.id}")
    return json_response(JobResponse.model_validate(job), 202, Location=location)


async def finished_or_accepted(service: Parts, job: Job, request: Request) -> Response:
    """200 with all outcomes if the client wants to wait and the job ends in time, else 202."""
    wait_s = preferred_wait_s(request)
    if wait_s:
        job = await wait_for_job(service.rows, job, request, wait_s=wait_s)
    if not wait_s or not job.state.is_final:
        return accepted(job, request)
    outcomes = await run_sync(_all_outcomes, service.rows, job)
    body = FinishedJobResponse(
        job=JobResponse.model_validate(job),
        outcomes=[OutcomeResponse.model_validate(outcome) for outcome in outcomes],
    )
    return json_response(body, Preference_Applied=f"wait={wait_s:g}")


def _all_outcomes(rows: Rows, job: Job) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while page := rows.outcomes(job.id, after=outcomes[-1].ordinal if outcomes else -1):
        outcomes += page
    return outcomes
