"""/v1/collections/{collection}/answer and /v1/answer"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.parameters import CollectionName
from app.api.permits import search_permit
from app.api.problems import responses
from app.api.schemas.answers import AnswerRequest, AnswersResponse, ContextsRequest, ContextsResponse
from app.api.state import parts
from app.filters import parse_filter
from app.services.answering import Answering

router = APIRouter(
    prefix="/v1", tags=["answers"], route_class=StrictRoute, dependencies=[Depends(search_permit)]
)

QUESTION_EXAMPLES: dict[str, Any] = {
    "question": {
        "summary": "A question to the demo corpus",
        "value": {"question": "Why did Tesla leave Edison's company?", "top_k": 3},
    },
    "filter": {
        "summary": "Among some documents, within half a second",
        "value": {
            "question": "What do leaves give off?",
            "filter": {"field": "article", "eq": "Oxygen"},
            "budget_ms": 500,
        },
    },
}
CONTEXTS_EXAMPLES: dict[str, Any] = {
    "contexts": {
        "summary": "Two texts",
        "value": {
            "question": "Where was the bridge built?",
            "contexts": [
                "The oldest bridge of the town was built at Torun in 1500.",
                "A castle stands on the mountain.",
            ],
        },
    },
}


@router.post(
    "/collections/{collection}/answer",
    operation_id="answer_question",
    summary="Answer a question out of a collection",
    response_description="Quoted answers, best first, which may be none.",
    response_model=AnswersResponse,
    responses=responses(404, 409, 413, 415),
)
def answer_question(
    request: Request,
    name: CollectionName,
    body: Annotated[AnswerRequest, Body(openapi_examples=QUESTION_EXAMPLES)],
) -> Response:
    """Read the passages that hybrid search finds best, and quote the spans that answer the question.

    An answer is always the document's own text, with its offsets. Whether a passage answers at all is decided
    in that passage alone, so that passages without an answer do not hide one. 409 if no model reads.
    """
    service = parts(request)
    result = Answering(service.reading).from_collection(
        name,
        body.question,
        search=service.search,
        rows=service.rows,
        top_k=body.top_k,
        candidates=body.candidates,
        budget_ms=body.budget_ms,
        truncate=body.truncate,
        condition=None if body.filter is None else parse_filter(body.filter),
        offsets=body.offsets,
    )
    service.traces.stages(result.timings_ms)
    return json_response(AnswersResponse.of(result, min_score=body.min_score))


@router.post(
    "/answer",
    operation_id="answer_from_contexts",
    summary="Answer a question out of given texts",
    response_description="Quoted answers, best first, which may be none.",
    response_model=ContextsResponse,
    responses=responses(409, 413, 415),
)
def answer_from_contexts(
    request: Request, body: Annotated[ContextsRequest, Body(openapi_examples=CONTEXTS_EXAMPLES)]
) -> Response:
    """Quote the spans of the texts that answer the question. No collection is needed; nothing is stored.

    Blank texts are named in `unread`, the others are read. Without any text there is no answer.
    """
    service = parts(request)
    result = Answering(service.reading).from_contexts(
        body.question, body.contexts, top_k=body.top_k, truncate=body.truncate, offsets=body.offsets
    )
    service.traces.stages(result.timings_ms)
    return json_response(ContextsResponse.of(result, min_score=body.min_score))
