"""/v1/classify"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.permits import search_permit
from app.api.problems import responses
from app.api.schemas.classification import ClassificationResponse, ClassifyRequest, ClassifyResponse
from app.api.state import Parts, parts
from app.services.classification import Classified

router = APIRouter(
    prefix="/v1/classify",
    tags=["classification"],
    route_class=StrictRoute,
    dependencies=[Depends(search_permit)],
)

SEQUENCE_EXAMPLES: dict[str, Any] = {
    "zero-shot": {
        "summary": "By labels, one of them described",
        "value": {
            "texts": ["The central bank raised interest rates.", "She scored twice in the second half."],
            "labels": [
                "sports",
                {"label": "economy", "description": "business, markets, money and the economy"},
            ],
        },
    },
    "several": {
        "summary": "A text may have several labels",
        "value": {
            "texts": ["The striker's club borrowed 50 million at high interest."],
            "labels": ["football", "banking", "gardening"],
            "multi_label": True,
        },
    },
    "classifier": {
        "summary": "By a trained classifier",
        "value": {"texts": ["where is my card", "tell me a joke"], "classifier": "intents", "top_k": 2},
    },
}


@router.post(
    "/sequence",
    operation_id="classify_sequence",
    summary="Say what texts are",
    response_description="Labels of each text.",
    response_model=ClassifyResponse,
    responses=responses(404, 409, 413, 415),
)
def classify_sequence(
    request: Request, body: Annotated[ClassifyRequest, Body(openapi_examples=SEQUENCE_EXAMPLES)]
) -> Response:
    """Zero-shot, by the cosine between each text and each label or its description; or by a classifier that
    `PUT /v1/classifiers/{classifier}` trained.

    A batch is answered as its texts would be alone. `[]` gives `[]`.
    """
    service = parts(request)
    if body.classifier is None:
        found = service.classifiers.zero_shot(
            body.texts,
            body.described_labels(),
            multi_label=body.multi_label,
            top_k=body.top_k,
            truncate=body.truncate,
        )
    else:
        found = service.classifiers.classify(
            body.classifier, body.texts, version=body.version, top_k=body.top_k, truncate=body.truncate
        )
    return json_response(_response(service, body, found))


def _response(service: Parts, body: ClassifyRequest, found: Classified) -> ClassifyResponse:
    version = found.version
    return ClassifyResponse(
        results=[ClassificationResponse.model_validate(each) for each in found.results],
        task="zero-shot" if version is None else "classifier",
        multi_label=body.multi_label if version is None else version.multi_label,
        model=service.embedder.description.name,
        classifier=None if version is None else version.name,
        version=None if version is None else version.version,
        scope_threshold=None if version is None else version.scope_threshold,
        max_tokens=found.max_tokens,
        timings_ms=found.timings_ms,
    )
