"""/v1/collections/{collection}/evaluations"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from app.api.bodies import StrictRoute, json_response, parse_json, require_media_type
from app.api.cursors import decode_cursor, encode_cursor
from app.api.judged_files import read_judged
from app.api.middleware import public_url
from app.api.parameters import CollectionName, Cursor, EvaluationId, Limit
from app.api.problems import responses
from app.api.schemas.evaluations import EvaluationRequest, EvaluationResponse, EvaluationsResponse
from app.api.schemas.jobs import JobResponse
from app.api.state import Parts, parts
from app.domain import Job, JobInput, JobKind, JobState
from app.errors import InvalidInput, JobNotFound, Overloaded
from app.services.reranking import needed_reranker

router = APIRouter(prefix="/v1/collections/{collection}", tags=["evaluations"], route_class=StrictRoute)

MAX_WAITING = 10
"""Evaluations that nobody has begun; each may take minutes."""
MULTIPART = "multipart/form-data"
QUERIES, QRELS, CONFIGURATIONS = "queries", "qrels", "configurations"
EXAMPLES: dict[str, Any] = {
    "modes": {
        "summary": "Two questions, all modes",
        "value": {
            "queries": [
                {"id": "1", "text": "who discovered oxygen", "judgements": {"Oxygen/11": 2}},
                {"id": "2", "text": "largest rainforest on earth", "judgements": {"Amazon_rainforest/0": 1}},
            ]
        },
    },
    "weights": {
        "summary": "Two weights against each other",
        "value": {
            "queries": [{"id": "1", "text": "who discovered oxygen", "judgements": {"Oxygen/11": 2}}],
            "configurations": [
                {"name": "words", "fusion": {"dense_weight": 0.5}},
                {"name": "meaning", "fusion": {"dense_weight": 0.9}},
            ],
        },
    },
}
FILES_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        MULTIPART: {
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "required": [QUERIES, QRELS],
                "properties": {
                    QUERIES: {
                        "type": "string",
                        "format": "binary",
                        "description": "JSON lines: `_id` and `text`, as in BEIR's queries.jsonl.",
                    },
                    QRELS: {
                        "type": "string",
                        "format": "binary",
                        "description": "Query id, document id, relevance between tabs; a heading is allowed.",
                    },
                    CONFIGURATIONS: {
                        "type": "string",
                        "description": "JSON: the list that the body of POST .../evaluations has.",
                    },
                },
            }
        }
    },
}
ACCEPTED: dict[str, Any] = {
    "description": "Stored durably; the worker will do it. `Location` is where it can be followed.",
    "model": EvaluationResponse,
    "headers": {"Location": {"description": "URL of the evaluation.", "schema": {"type": "string"}}},
}


@router.post(
    "/evaluations",
    operation_id="post_evaluation",
    summary="Measure searches on judged queries",
    status_code=202,
    responses={**responses(404, 409, 413, 415, 507), 202: ACCEPTED},
)
def post_evaluation(
    request: Request,
    name: CollectionName,
    body: Annotated[EvaluationRequest, Body(openapi_examples=EXAMPLES)],
) -> Response:
    """Ask every query in every configuration and compare the rankings with the judgements.

    The worker does it beside the writes, over the documents as they are then. The result has nDCG@10, MRR@10,
    Recall@100 and MAP@100 with intervals, the differences with p-values, and latencies; it is kept until the
    evaluation or the collection is deleted.
    """
    return _accepted(parts(request), name, body, request)


async def uploaded_request(request: Request) -> AsyncIterator[EvaluationRequest]:
    """The request that the parts make."""
    require_media_type(request, MULTIPART)
    async with request.form(max_files=2, max_fields=1) as form:
        given = dict(form.multi_items())
        for name, value in given.items():
            if name not in {QUERIES, QRELS, CONFIGURATIONS}:
                raise InvalidInput(
                    f"is not a known part; known are {QUERIES}, {QRELS} and {CONFIGURATIONS}", where=(name,)
                )
            if isinstance(value, UploadFile) is (name == CONFIGURATIONS):
                kind = "text, not a file" if name == CONFIGURATIONS else "a file: the part needs a file name"
                raise InvalidInput(f"has to be {kind}", where=(name,))
        for name in (QUERIES, QRELS):
            if name not in given:
                raise InvalidInput("is missing: a file", where=(name,))
        yield await run_sync(_read_parts, given)


@router.post(
    "/evaluation-files",
    operation_id="post_evaluation_files",
    summary="Measure searches on judged queries in files",
    status_code=202,
    responses={**responses(404, 409, 413, 415, 507), 202: ACCEPTED},
    openapi_extra={"requestBody": FILES_BODY},
)
def post_evaluation_files(
    request: Request, name: CollectionName, body: Annotated[EvaluationRequest, Depends(uploaded_request)]
) -> Response:
    """As POST .../evaluations, with queries and judgements as files in the layout of BEIR.

    Queries without a judgement are left out.
    """
    return _accepted(parts(request), name, body, request)


@router.get(
    "/evaluations",
    operation_id="list_evaluations",
    summary="List evaluations",
    response_description="A page of evaluations.",
    response_model=EvaluationsResponse,
    responses=responses(404),
)
def list_evaluations(
    request: Request, name: CollectionName, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """Those of the collection, newest first, without their results, a page at a time."""
    rows = parts(request).rows
    collection = rows.collection(name)
    listing = f"evaluations {collection.key}"
    after = None if cursor is None else str(decode_cursor(listing, cursor))
    found = rows.jobs(after=after, limit=limit + 1, kind=JobKind.EVALUATION, collection_key=collection.key)
    page = found[:limit]
    more = encode_cursor(listing, page[-1].id) if len(found) > limit else None
    return json_response(
        EvaluationsResponse(evaluations=[JobResponse.model_validate(job) for job in page], next_cursor=more)
    )


@router.get(
    "/evaluations/{evaluation_id}",
    operation_id="get_evaluation",
    summary="Show an evaluation",
    response_description="The evaluation.",
    response_model=EvaluationResponse,
    responses=responses(404),
)
def get_evaluation(request: Request, name: CollectionName, evaluation_id: EvaluationId) -> Response:
    """State, progress, and the result once it is there."""
    service = parts(request)
    return json_response(_shown(service, _evaluation(service, name, evaluation_id)))


@router.delete(
    "/evaluations/{evaluation_id}",
    operation_id="delete_evaluation",
    summary="Cancel or delete an evaluation",
    response_description="Deleted.",
    status_code=204,
    response_class=Response,
    responses=responses(404, 507),
)
def delete_evaluation(request: Request, name: CollectionName, evaluation_id: EvaluationId) -> Response:
    """Stop it if it is not finished, and delete it with its result."""
    service = parts(request)
    service.rows.forget_job(_evaluation(service, name, evaluation_id).id)
    return Response(status_code=204)


def _accepted(service: Parts, name: str, body: EvaluationRequest, request: Request) -> Response:
    """
    Raises:
        Overloaded: too many wait.
        ModelNotConfigured: no model reranks.
        CollectionNotFound
    """
    collection = service.rows.collection(name)
    waiting = service.rows.jobs(kind=JobKind.EVALUATION, state=JobState.QUEUED, limit=MAX_WAITING)
    if len(waiting) == MAX_WAITING:
        raise Overloaded(f"{MAX_WAITING} evaluations wait already; try again later", retry_after_s=60)
    if any(each.rerank for each in body.configurations):
        needed_reranker(service.reading)
    asked = {"configurations": [each.over(collection) for each in body.configurations]}
    job = service.rows.submit_job(
        collection.key, JobKind.EVALUATION, _inputs(body), request=json.dumps(asked)
    )
    location = public_url(request.scope, f"/v1/collections/{name}/evaluations/{job.id}")
    return json_response(_shown(service, job), 202, Location=location)


def _inputs(body: EvaluationRequest) -> Iterator[JobInput]:
    for ordinal, query in enumerate(body.queries):
        yield JobInput(ordinal, query.model_dump_json().encode())


def _evaluation(service: Parts, name: str, evaluation_id: str) -> Job:
    """Raises CollectionNotFound, JobNotFound."""
    collection = service.rows.collection(name)
    job = service.rows.job(evaluation_id)
    if job.kind is not JobKind.EVALUATION or job.collection != collection.name:
        raise JobNotFound(f"the collection {name!r} has no evaluation {evaluation_id!r}")
    return job


def _shown(service: Parts, job: Job) -> EvaluationResponse:
    return EvaluationResponse.of(job, service.rows.job_report(job.id))


def _read_parts(given: Mapping[str, Any]) -> EvaluationRequest:
    """
    Raises:
        BadFile: a file that cannot be read, naming the line.
        RequestValidationError: what it holds is outside of what is allowed.
        HTTPException: configurations that are no JSON.
    """
    read: dict[str, Any] = {"queries": read_judged(given[QUERIES].file, given[QRELS].file)}
    if CONFIGURATIONS in given:
        read["configurations"] = parse_json(given[CONFIGURATIONS].encode())
    try:
        return EvaluationRequest.model_validate(read)
    except ValidationError as error:
        located = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(located) from error
