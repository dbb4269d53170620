"""What runs: health, models and limits."""

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from app.api.bodies import StrictRoute, json_response
from app.api.problems import HTTP_KINDS, problem_response, request_id, responses
from app.api.schemas.answers import (
    MAX_ANSWERS,
    MAX_CANDIDATES,
    MAX_CONTEXTS,
    MAX_CONTEXTS_CHARS,
    MAX_QUESTION_CHARS,
)
from app.api.schemas.classification import MAX_CLASSIFIED_CHARS, MAX_TAGGED_CHARS
from app.api.schemas.inspection import MAX_INSPECTED_CHARS, MAX_TEXTS
from app.api.schemas.models import (
    LimitsResponse,
    LiveResponse,
    ModelResponse,
    ModelsResponse,
    ReadyResponse,
)
from app.api.schemas.searches import MAX_PASSAGES_PER_HIT, MAX_QUERY_CHARS, MAX_TOP_K
from app.api.state import Parts, parts
from app.api.store_metrics import StoreCollector
from app.api.waiting import MAX_WAIT_S
from app.errors import BifocalError
from app.services.examples import MAX_EXAMPLES, MAX_LABELS

router = APIRouter(tags=["service"], route_class=StrictRoute)

MAX_DOCUMENT_ID_BYTES = 512


@router.get(
    "/livez",
    operation_id="get_liveness",
    summary="Is the process alive",
    response_description="Alive.",
    response_model=LiveResponse,
    responses=responses(),
)
async def get_liveness() -> Response:
    """200 as soon as the process answers at all."""
    return json_response(LiveResponse(status="live"))


@router.get(
    "/readyz",
    operation_id="get_readiness",
    summary="Can requests be served",
    response_description="Ready.",
    response_model=ReadyResponse,
    responses=responses(),
)
async def get_readiness(request: Request) -> Response:
    """200 when the bi-encoder is loaded, the files of the other models are whole, the store can be read and a
    worker is running; else 503."""
    # In a thread of its own: those that all endpoints share may be taken by searches, which is no illness.
    checks = await run_sync(_checks, parts(request), limiter=CapacityLimiter(1))
    if all(found == "ok" for found in checks.values()):
        return json_response(ReadyResponse(status="ready", checks=checks))
    missing = "; ".join(f"{name}: {found}" for name, found in checks.items() if found != "ok")
    return problem_response(
        HTTP_KINDS[503],
        missing,
        request_id=request_id(request),
        headers={"Retry-After": "1"},
        members={"checks": checks},
    )


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        **responses(),
        200: {
            "description": "In Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
    },
)
async def get_metrics(request: Request) -> Response:
    """Requests, latencies, models, jobs, documents and indexes. Where a key is needed, one with the scope
    `metrics` will do."""
    service = parts(request)
    service.metrics.look()
    content = await run_sync(service.metrics.exposed, StoreCollector(service), limiter=CapacityLimiter(1))
    return Response(content, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get(
    "/v1/models",
    operation_id="list_models",
    summary="Models and limits",
    response_description="Models and limits.",
    response_model=ModelsResponse,
    responses=responses(),
)
def list_models(request: Request) -> Response:
    """Which model has which role, what runs it, and every limit of the interface."""
    service = parts(request)
    model, settings = service.embedder.description, service.settings
    limits = LimitsResponse(
        max_body_bytes=settings.max_body_bytes,
        max_batch=settings.max_batch,
        max_document_chars=settings.max_document_chars,
        max_query_chars=MAX_QUERY_CHARS,
        max_query_tokens=model.max_tokens,
        max_top_k=MAX_TOP_K,
        max_passages_per_hit=MAX_PASSAGES_PER_HIT,
        max_candidates=MAX_CANDIDATES,
        max_question_chars=MAX_QUESTION_CHARS,
        max_answers=MAX_ANSWERS,
        max_contexts=MAX_CONTEXTS,
        max_contexts_chars=MAX_CONTEXTS_CHARS,
        max_texts=MAX_TEXTS,
        max_classified_chars=MAX_CLASSIFIED_CHARS,
        max_tagged_chars=MAX_TAGGED_CHARS,
        max_examples=MAX_EXAMPLES,
        max_labels=MAX_LABELS,
        max_inspected_chars=MAX_INSPECTED_CHARS,
        max_document_id_bytes=MAX_DOCUMENT_ID_BYTES,
        max_wait_s=MAX_WAIT_S,
    )
    embedders = [
        ModelResponse.of_embedder(role, each.description) for role, each in service.embedders.by_role
    ]
    heads = [
        ModelResponse.of_head(role, head.description, is_loaded=head.is_loaded)
        for role, head in [*service.reading.by_role, *service.texts.by_role]
    ]
    return json_response(ModelsResponse(models=[*embedders, *heads], limits=limits))


def _checks(service: Parts) -> dict[str, str]:
    return {
        "store": _store(service),
        "embedder": _embedder(service),
        "reading": _reading(service),
        "texts": _texts(service),
        "worker": _worker(service),
    }


def _store(service: Parts) -> str:
    try:
        service.rows.data_version()
    except BifocalError as error:
        return str(error)
    return "ok"


def _embedder(service: Parts) -> str:
    try:
        return service.embedders.fault or "ok"
    except BifocalError as error:
        return str(error)


def _reading(service: Parts) -> str:
    try:
        return service.reading.fault or "ok"
    except BifocalError as error:
        return str(error)


def _texts(service: Parts) -> str:
    try:
        return service.texts.fault or "ok"
    except BifocalError as error:
        return str(error)


def _worker(service: Parts) -> str:
    try:
        return "ok" if service.rows.worker_alive() else "no worker is running; start `bifocal worker`"
    except BifocalError as error:
        return str(error)
