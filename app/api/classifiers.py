"""/v1/classifiers"""

import json
from typing import IO, Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Body, Depends, Query, Request, Response

from app.api.bodies import StrictRoute, json_response, require_media_type, spooled_body
from app.api.example_files import CSV, JSON, NDJSON, TSV, read_examples
from app.api.parameters import ClassifierName
from app.api.permits import training_permit
from app.api.problems import responses
from app.api.schemas.classifiers import (
    ActivationRequest,
    ClassifierHeadResponse,
    ClassifierResponse,
    ClassifiersResponse,
    ClassifierVersionsResponse,
    TrainedResponse,
)
from app.api.state import parts
from app.services.classification import Training

router = APIRouter(prefix="/v1/classifiers", tags=["classification"], route_class=StrictRoute)

EXAMPLES: list[dict[str, str | None]] = [
    {"text": "I am still waiting on my card", "label": "card_arrival"},
    {"text": "My new card has not come in the post yet", "label": "card_arrival"},
    {"text": "What is the exchange rate for euros?", "label": "exchange_rate"},
    {"text": "How do you work out your currency rates?", "label": "exchange_rate"},
    {"text": "Sing me a song", "label": None},
]
TABLE = "text,label\n" + "".join(f'"{each["text"]}",{each["label"] or ""}\n' for each in EXAMPLES)
TRAINING_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        JSON: {
            "schema": {"$ref": "#/components/schemas/TrainingRequest"},
            "examples": {
                "intents": {
                    "summary": "Two intents, one text out of scope",
                    "value": {"examples": EXAMPLES},
                }
            },
        },
        NDJSON: {
            "schema": {"type": "string", "description": "One ExampleInput per line."},
            "examples": {
                "intents": {
                    "summary": "The same, line by line",
                    "value": "".join(json.dumps(each) + "\n" for each in EXAMPLES),
                }
            },
        },
        **{
            media_type: {
                "schema": {
                    "type": "string",
                    "description": "Columns text and label, or text and labels (separated by |), named in "
                    "the first line. An empty label: out of scope.",
                },
                "examples": {"intents": {"summary": "The same as a table", "value": table}},
            }
            for media_type, table in ((CSV, TABLE), (TSV, TABLE.replace(",", "\t")))
        },
    },
}
MultiLabel = Annotated[bool, Query(description="Whether a text may have several labels, or none.")]


@router.put(
    "/{classifier}",
    operation_id="put_classifier",
    summary="Train a classifier from examples",
    response_model=TrainedResponse,
    dependencies=[Depends(training_permit)],
    responses={
        **responses(413, 415, 507),
        200: {"description": "The active version is of the same examples already; nothing was trained."},
        201: {"description": "Trained; the new version is active.", "model": TrainedResponse},
    },
    openapi_extra={"requestBody": TRAINING_BODY},
)
async def put_classifier(
    request: Request,
    name: ClassifierName,
    body: Annotated[IO[bytes], Depends(spooled_body)],
    multi_label: MultiLabel = False,
) -> Response:
    """Encode the examples, fit a logistic regression on the vectors, and judge it by cross-validation.

    Some hundred examples take a second or two, the 20,000 that are allowed half a minute; the answer comes
    when it is done, and one training runs at a time. Every training with other examples is a new version;
    the last 10 are kept, and an earlier one can be made active again. Examples are not kept.
    """
    media_type = require_media_type(request, JSON, NDJSON, CSV, TSV)
    service = parts(request)

    def train() -> Training:
        return service.classifiers.train(name, read_examples(body, media_type), multi_label=multi_label)

    training = await run_sync(train)
    return json_response(TrainedResponse.of_training(training), 201 if training.was_trained else 200)


@router.get(
    "",
    operation_id="list_classifiers",
    summary="List classifiers",
    response_description="All classifiers.",
    response_model=ClassifiersResponse,
    responses=responses(),
)
def list_classifiers(request: Request) -> Response:
    """The active version of each, without its report."""
    found = parts(request).rows.classifiers()
    return json_response(
        ClassifiersResponse(classifiers=[ClassifierHeadResponse.model_validate(each) for each in found])
    )


@router.get(
    "/{classifier}",
    operation_id="get_classifier",
    summary="Show a classifier",
    response_description="The active version.",
    response_model=ClassifierResponse,
    responses=responses(404),
)
def get_classifier(request: Request, name: ClassifierName) -> Response:
    """The active version with its report."""
    return json_response(ClassifierResponse.of(parts(request).rows.classifier(name).version))


@router.get(
    "/{classifier}/versions",
    operation_id="list_classifier_versions",
    summary="List versions of a classifier",
    response_description="All versions that are kept.",
    response_model=ClassifierVersionsResponse,
    responses=responses(404),
)
def list_classifier_versions(request: Request, name: ClassifierName) -> Response:
    """Every version that is kept, with its report."""
    versions = parts(request).rows.classifier_versions(name)
    return json_response(
        ClassifierVersionsResponse(versions=[ClassifierResponse.of(each) for each in versions])
    )


@router.put(
    "/{classifier}/active",
    operation_id="activate_classifier",
    summary="Make a version of a classifier answer",
    response_description="The version that is active now.",
    response_model=ClassifierResponse,
    responses=responses(404, 413, 415, 507),
)
def activate_classifier(
    request: Request,
    name: ClassifierName,
    body: Annotated[
        ActivationRequest,
        Body(openapi_examples={"first": {"summary": "Back to the first", "value": {"version": 1}}}),
    ],
) -> Response:
    """Roll back to an earlier version, or forth again."""
    return json_response(ClassifierResponse.of(parts(request).rows.activate_classifier(name, body.version)))


@router.delete(
    "/{classifier}",
    operation_id="delete_classifier",
    summary="Delete a classifier",
    response_description="Deleted.",
    status_code=204,
    response_class=Response,
    responses=responses(404, 507),
)
def delete_classifier(request: Request, name: ClassifierName) -> Response:
    """Delete it with all versions."""
    parts(request).rows.drop_classifier(name)
    return Response(status_code=204)
