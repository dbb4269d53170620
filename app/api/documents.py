"""/v1/collections/{collection}/documents"""

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import IO, Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from app.api.bodies import StrictRoute, json_response, parse_json, require_media_type, spooled_body
from app.api.cursors import decode_cursor, encode_cursor
from app.api.filters import FilterText, name_of, parse_text
from app.api.jobs import ACCEPTED, PREFER, accepted, finished_or_accepted, submitted
from app.api.parameters import CollectionName, Cursor, DocumentId, Limit
from app.api.problems import responses
from app.api.schemas.documents import (
    DocumentBatch,
    DocumentContent,
    DocumentHead,
    DocumentInput,
    DocumentResponse,
    DocumentsResponse,
)
from app.api.schemas.jobs import FinishedJobResponse, WriteResponse
from app.api.state import Parts, parts
from app.api.waiting import preferred_wait_s, wait_for_job
from app.domain import Job, JobInput, JobKind, JobState, Outcome, OutcomeStatus
from app.errors import BadDocument, DocumentNotFound, InvalidInput, JobFailed

router = APIRouter(
    prefix="/v1/collections/{collection}/documents", tags=["documents"], route_class=StrictRoute
)

JSON, NDJSON = "application/json", "application/x-ndjson"
BATCH_EXAMPLE = {
    "documents": [
        {
            "id": "notes/siamese",
            "title": "Siamese encoders",
            "text": "Both texts go through the same network. Their vectors are compared by cosine.",
            "metadata": {"year": 2019, "tags": ["retrieval", "sentence embeddings"]},
        },
        {"id": "notes/pairs", "text": "A cross-encoder reads query and passage together."},
    ]
}
BATCH_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        JSON: {
            "schema": {"$ref": "#/components/schemas/DocumentBatch"},
            "examples": {"notes": {"summary": "Two notes", "value": BATCH_EXAMPLE}},
        },
        NDJSON: {
            "schema": {"type": "string", "description": "One DocumentInput per line."},
            "examples": {
                "notes": {
                    "summary": "Two notes",
                    "value": "".join(json.dumps(each) + "\n" for each in BATCH_EXAMPLE["documents"]),
                }
            },
        },
    },
}
PUT_EXAMPLES: dict[str, Any] = {
    "note": {
        "summary": "A note",
        "value": {
            "title": "Mean pooling",
            "text": "The vector of a text is the mean of the vectors of its tokens.",
            "metadata": {"year": 2019},
        },
    }
}


@router.post(
    "",
    operation_id="post_documents",
    summary="Create or replace documents",
    status_code=202,
    responses={
        **responses(404, 409, 413, 415, 507),
        200: {
            "description": "Finished within `Prefer: wait`.",
            "model": FinishedJobResponse,
            "headers": {"Preference-Applied": {"schema": {"type": "string"}}},
        },
        202: ACCEPTED,
    },
    openapi_extra={"requestBody": BATCH_BODY, "parameters": [PREFER]},
)
async def post_documents(
    request: Request, name: CollectionName, body: Annotated[IO[bytes], Depends(spooled_body)]
) -> Response:
    """Store a batch as a job and answer at once; the worker does the rest.

    JSON `{"documents": [...]}`, or NDJSON with one document a line. A body of the wrong shape is refused
    as a whole. A document that cannot be taken (blank text, a limit exceeded) is `rejected` in its
    outcome, the others succeed. With `Prefer: wait=10` the answer comes when the job is finished, with
    the outcome of each document, or after 10 seconds.
    """
    media_type = require_media_type(request, JSON, NDJSON)
    service = parts(request)

    def submit() -> Job:
        read = _read_batch if media_type == JSON else _read_lines
        inputs = _at_most(read(body), service.settings.max_batch)
        return submitted(service, name, JobKind.DOCUMENTS, inputs)

    return await finished_or_accepted(service, await run_sync(submit), request)


@router.get(
    "",
    operation_id="list_documents",
    summary="List documents",
    response_description="A page of documents.",
    response_model=DocumentsResponse,
    responses=responses(404),
)
def list_documents(
    request: Request,
    name: CollectionName,
    limit: Limit = 100,
    cursor: Cursor = None,
    filter_text: FilterText = None,
) -> Response:
    """Documents by id in code point order, without their texts, a page at a time."""
    rows = parts(request).rows
    condition = parse_text(filter_text)
    collection = rows.collection(name)
    listing = name_of(f"documents {collection.key}", filter_text)
    after = None if cursor is None else str(decode_cursor(listing, cursor))
    found = rows.documents(collection.key, after=after, limit=limit + 1, condition=condition)
    page = found[:limit]
    more = encode_cursor(listing, page[-1].id) if len(found) > limit else None
    return json_response(
        DocumentsResponse(documents=[DocumentHead.model_validate(head) for head in page], next_cursor=more)
    )


@router.get(
    "/{document_id:path}",
    operation_id="get_document",
    summary="Show a document",
    response_description="The document.",
    response_model=DocumentResponse,
    responses=responses(404),
)
def get_document(request: Request, name: CollectionName, document_id: DocumentId) -> Response:
    """The document with its text as it was stored, character for character."""
    rows = parts(request).rows
    stored = rows.document(rows.collection(name).key, document_id)
    return json_response(DocumentResponse.of(stored))


@router.put(
    "/{document_id:path}",
    operation_id="put_document",
    summary="Create or replace a document",
    response_model=WriteResponse,
    responses={
        **responses(404, 409, 413, 415, 507),
        200: {"description": "Replaced, or unchanged."},
        201: {"description": "Created.", "model": WriteResponse},
        202: ACCEPTED,
    },
    openapi_extra={"parameters": [PREFER]},
)
async def put_document(
    request: Request,
    name: CollectionName,
    document_id: DocumentId,
    content: Annotated[DocumentContent, Body(openapi_examples=PUT_EXAMPLES)],
) -> Response:
    """Store one document and wait until searches see it.

    If the worker is behind, the answer is 202 with the job after `wait_s` seconds, or as many as
    `Prefer: wait` says; the document will be stored all the same.
    """
    written = {"id": document_id, **content.model_dump(exclude_none=True)}
    done = await _write_one(request, name, JobKind.DOCUMENTS, written)
    if isinstance(done, Response):
        return done
    job, outcome = done
    return json_response(
        WriteResponse(
            job_id=job.id,
            document_id=document_id,
            status=outcome.status,
            n_passages=outcome.n_passages,
            n_tokens=outcome.n_tokens,
            warnings=list(outcome.warnings),
        ),
        201 if outcome.status is OutcomeStatus.CREATED else 200,
    )


@router.delete(
    "/{document_id:path}",
    operation_id="delete_document",
    summary="Delete a document",
    response_description="Deleted; no search finds it.",
    status_code=204,
    response_class=Response,
    responses={**responses(404, 409, 507), 202: ACCEPTED},
    openapi_extra={"parameters": [PREFER]},
)
async def delete_document(request: Request, name: CollectionName, document_id: DocumentId) -> Response:
    """Delete one document and wait until no search finds it. 202 with the job if the worker is behind."""
    done = await _write_one(request, name, JobKind.DELETE, document_id)
    if isinstance(done, Response):
        return done
    if done[1].status is OutcomeStatus.NOT_FOUND:
        raise DocumentNotFound(f"there is no document {document_id!r} in the collection {name!r}")
    return Response(status_code=204)


async def _write_one(
    request: Request, name: str, kind: JobKind, written: object
) -> Response | tuple[Job, Outcome]:
    """The job with its one outcome, or 202 where it is not finished in time.

    Raises:
        BadDocument: the worker refused it.
        JobFailed: the job ended without an outcome.
    """
    service = parts(request)

    def submit() -> Job:
        only = JobInput(ordinal=0, body=json.dumps(written).encode())
        return submitted(service, name, kind, [only])

    job = await run_sync(submit)
    wanted = preferred_wait_s(request)
    wait_s = service.settings.wait_s if wanted is None else wanted
    job = await wait_for_job(service.rows, job, request, wait_s=wait_s)
    if not job.state.is_final:
        return accepted(job, request)
    return job, await run_sync(_only_outcome, service, job)


def _only_outcome(service: Parts, job: Job) -> Outcome:
    outcomes = service.rows.outcomes(job.id, limit=1)
    if job.state is not JobState.SUCCEEDED or not outcomes:
        reason = f": {job.error}" if job.error else ""
        raise JobFailed(f"the job {job.id} is {job.state.value}{reason}")
    if outcomes[0].status is OutcomeStatus.REJECTED:
        raise BadDocument(str(outcomes[0].error))
    return outcomes[0]


def _read_batch(body: IO[bytes]) -> Iterator[JobInput]:
    parsed = parse_json(body.read())
    _check(DocumentBatch, parsed)
    for ordinal, document in enumerate(parsed["documents"]):
        yield JobInput(ordinal=ordinal, body=json.dumps(document, ensure_ascii=False).encode())


def _read_lines(body: IO[bytes]) -> Iterator[JobInput]:
    numbered = ((number, line.strip()) for number, line in enumerate(body, start=1))
    for ordinal, (number, line) in enumerate((number, line) for number, line in numbered if line):
        try:
            parsed = parse_json(line)
        except HTTPException as error:
            raise HTTPException(error.status_code, f"line {number} of the body: {error.detail}") from error
        _check(DocumentInput, parsed, "documents", ordinal)
        yield JobInput(ordinal=ordinal, body=line)


def _check(schema: type[DocumentBatch] | type[DocumentInput], parsed: object, *where: str | int) -> None:
    try:
        schema.model_validate(parsed)
    except ValidationError as error:
        located = [{**each, "loc": ("body", *where, *each["loc"])} for each in error.errors()]
        raise RequestValidationError(located) from error


def _at_most(inputs: Iterable[JobInput], max_batch: int) -> Iterator[JobInput]:
    inputs = iter(inputs)
    yield from itertools.islice(inputs, max_batch)
    if next(inputs, None) is not None:
        raise InvalidInput(
            f"more than {max_batch} documents; send them in batches of up to {max_batch} (max_batch)",
            where=("documents",),
        )
