"""/v1/classify"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.permits import search_permit
from app.api.problems import responses
from app.api.schemas.classification import (
    ClassificationResponse,
    ClassifyRequest,
    ClassifyResponse,
    TaggedResponse,
    TokenRequest,
    TokenResponse,
)
from app.api.state import Parts, parts
from app.engine.sequence_model import SequenceModel
from app.errors import ModelNotConfigured
from app.services.classification import Classified
from app.services.fine_tuned import classify_with, tag_texts

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
    "model": {
        "summary": "By a fine-tuned model",
        "value": {
            "texts": ["A film of great beauty.", "Two hours I will not get back."],
            "model": "sentiment",
        },
    },
}
TOKEN_EXAMPLES: dict[str, Any] = {
    "names": {
        "summary": "People, places and organisations",
        "value": {"texts": ["Marie Curie was born in Warsaw and worked at the University of Paris."]},
    }
}
NO_TAGGER = (
    "no model here finds entities: set BIFOCAL_TAGGER to one whose architecture ends in "
    "ForTokenClassification"
)


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
    """Zero-shot, by the cosine between each text and each label or its description; by a classifier that
    `PUT /v1/classifiers/{classifier}` trained, or by a fine-tuned model, if the service has one (409).

    A batch is answered as its texts would be alone. `[]` gives `[]`.
    """
    service = parts(request)
    if body.model is not None:
        model = _sequence_model(service, body.model)
        return json_response(
            _of_model(model, classify_with(model, body.texts, top_k=body.top_k, truncate=body.truncate))
        )
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


@router.post(
    "/token",
    operation_id="classify_token",
    summary="Find entities in texts",
    response_description="Entities of each text.",
    response_model=TokenResponse,
    responses=responses(409, 413, 415),
)
def classify_token(
    request: Request, body: Annotated[TokenRequest, Body(openapi_examples=TOKEN_EXAMPLES)]
) -> Response:
    """People, places, organisations, or whatever the model was trained to find, as whole words with offsets.

    Long texts are read in windows that overlap, and every character is decided by one of them. `[]` gives
    `[]`. Without such a model the answer is 409.
    """
    tagger = parts(request).texts.tagger
    if tagger is None:
        raise ModelNotConfigured(NO_TAGGER)
    found = tag_texts(tagger, body.texts, aggregation=body.aggregation)
    return json_response(
        TokenResponse(
            results=[TaggedResponse.of(*each) for each in zip(body.texts, found.results, strict=True)],
            model=tagger.description.name,
            max_tokens=tagger.description.max_tokens,
            timings_ms=found.timings_ms,
        )
    )


def _sequence_model(service: Parts, name: str) -> SequenceModel:
    models = service.texts.sequence
    if name not in models:
        there = f"there are {', '.join(sorted(models))}" if models else "there is none"
        raise ModelNotConfigured(
            f"no fine-tuned model {name!r}: {there}; BIFOCAL_SEQUENCE_MODELS names models whose "
            "architecture ends in ForSequenceClassification"
        )
    return models[name]


def _of_model(model: SequenceModel, found: Classified) -> ClassifyResponse:
    return ClassifyResponse(
        results=[ClassificationResponse.model_validate(each) for each in found.results],
        task="model",
        multi_label=model.multi_label,
        model=model.description.name,
        classifier=None,
        version=None,
        scope_threshold=None,
        max_tokens=found.max_tokens,
        timings_ms=found.timings_ms,
    )
