"""The OpenAPI document: FastAPI's, with our problem documents in place of its own errors.

python -m app.main > docs/openapi.json
"""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.access import scopes_of
from app.api.problems import MEDIA_TYPE
from app.api.schemas.classifiers import TrainingRequest
from app.api.schemas.documents import DocumentBatch, DocumentInput
from app.api.schemas.problem import Problem

DESCRIPTION = """Self-hosted semantic search on a CPU.

**Asymmetric** search compares a short query with passages of documents; **symmetric** search compares
whole texts. Every error is a problem document (RFC 9457, `application/problem+json`). Every response
carries `X-Request-Id` and `Server-Timing`. A service that asks for keys takes them as
`Authorization: Bearer KEY` or `X-API-Key: KEY`. Offsets are half-open and count Unicode code points,
or UTF-16 code units as well where a request asks for them.
"""
TAGS = [
    {"name": "search", "description": "Find passages and documents by meaning."},
    {"name": "answers", "description": "Quote what answers a question."},
    {"name": "documents", "description": "Put documents and files into collections."},
    {"name": "collections", "description": "Named sets of documents made by one model."},
    {"name": "evaluations", "description": "Measure searches on your own judged queries."},
    {"name": "jobs", "description": "Accepted writes: progress, outcomes, cancelling."},
    {"name": "classification", "description": "What texts are: by described, learned or fine-tuned labels."},
    {"name": "inspection", "description": "What a model sees of a text, and does with it inside."},
    {"name": "service", "description": "Health, models and limits."},
]
SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key of `bifocal keys create`."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same, alone."},
}
REFUSALS = {
    "401": "A key is needed, and none that counts was sent.",
    "403": "The key has not the scope that this needs, or is restricted to other collections.",
    "429": "Too many requests with this key or from this address; `Retry-After` says when to try again.",
}
REF = "#/components/schemas/{model}"


def install(app: FastAPI) -> None:
    """Make `app.openapi` build this document, once."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title="Bifocal",
        version=app.version,
        description=DESCRIPTION,
        routes=app.routes,
        tags=TAGS,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    document["servers"] = [{"url": ".", "description": "Where this document was loaded from"}]
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for model in (Problem, DocumentBatch, DocumentInput, TrainingRequest):
        schema = model.model_json_schema(ref_template=REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for operations in document["paths"].values():
        for operation in operations.values():
            _secure(operation)
            operation["responses"] = {
                status: _with_request_id(response)
                for status, response in sorted(operation["responses"].items())
            }
    return document


def _secure(operation: dict[str, Any]) -> None:
    """Say which scopes it needs. A service without keys needs none: the empty requirement."""
    scopes = [scope.value for scope in scopes_of(operation["operationId"])]
    if not scopes:
        operation["security"] = []
        return
    operation["security"] = [*({name: scopes} for name in SECURITY_SCHEMES), {}]
    operation["description"] += f"\n\nScope: {' or '.join(f'`{scope}`' for scope in scopes)}."
    for status, description in REFUSALS.items():
        content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
        operation["responses"].setdefault(status, {"description": description, "content": content})
        if status == "429":
            operation["responses"][status]["headers"] = {
                "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            }


def _with_request_id(response: dict[str, Any]) -> dict[str, Any]:
    header = {"description": "Id of the request in the log.", "schema": {"type": "string"}}
    return {**response, "headers": {**response.get("headers", {}), "X-Request-Id": header}}


def rendered(app: FastAPI) -> str:
    """As it is committed in docs/openapi.json."""
    return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"
