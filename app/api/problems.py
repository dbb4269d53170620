"""Errors as problem documents (RFC 9457): the one place where an error gets its HTTP status."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from app import errors

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:bifocal:problem:"


@dataclass(frozen=True, slots=True)
class Kind:
    status: int
    slug: str
    title: str

    @property
    def type(self) -> str:
        return TYPE_PREFIX + self.slug


KINDS: Mapping[type[errors.BifocalError], Kind] = {
    errors.BlankText: Kind(422, "blank-text", "Text is blank"),
    errors.TextTooLong: Kind(422, "text-too-long", "Text has more tokens than the model takes"),
    errors.BadDocument: Kind(422, "bad-document", "Document is outside of what is allowed"),
    errors.BadFile: Kind(422, "bad-file", "File cannot be read"),
    errors.BadVector: Kind(422, "bad-vector", "Text has no usable embedding"),
    errors.BadExamples: Kind(422, "bad-examples", "Examples allow no training"),
    errors.BadFilter: Kind(422, "bad-filter", "Filter is not allowed"),
    errors.BadCursor: Kind(422, "bad-cursor", "Cursor is not of this listing"),
    errors.CollectionNotFound: Kind(404, "collection-not-found", "No such collection"),
    errors.AliasNotFound: Kind(404, "alias-not-found", "No such alias"),
    errors.DocumentNotFound: Kind(404, "document-not-found", "No such document"),
    errors.ClassifierNotFound: Kind(404, "classifier-not-found", "No such classifier"),
    errors.JobNotFound: Kind(404, "job-not-found", "No such job"),
    errors.KeyNotFound: Kind(404, "key-not-found", "No such key"),
    errors.Unauthenticated: Kind(401, "unauthenticated", "A key is needed"),
    errors.Forbidden: Kind(403, "forbidden", "The key does not allow this"),
    errors.RateLimited: Kind(429, "rate-limited", "Too many requests"),
    errors.CollectionExists: Kind(409, "collection-exists", "Collection exists with other settings"),
    errors.NameTaken: Kind(409, "name-taken", "Name belongs to something else"),
    errors.CollectionInUse: Kind(409, "collection-in-use", "Collection is in use"),
    errors.StandbyMissing: Kind(409, "standby-missing", "Nothing to roll back to"),
    errors.FingerprintMismatch: Kind(409, "fingerprint-mismatch", "Made by another model"),
    errors.RankingChanged: Kind(409, "ranking-changed", "Ranking changed since the page before"),
    errors.JobFinished: Kind(409, "job-finished", "Job has finished"),
    errors.ModelNotConfigured: Kind(409, "model-not-configured", "No model for this"),
    errors.JobFailed: Kind(409, "job-failed", "Job ended without its result"),
    errors.Overloaded: Kind(503, "overloaded", "Service is busy"),
    errors.TrainingFailed: Kind(500, "training-failed", "Training failed"),
    errors.ModelUnavailable: Kind(503, "model-unavailable", "Model is not available"),
    errors.StorageFull: Kind(507, "storage-full", "No space left"),
    errors.StorageReadOnly: Kind(503, "storage-read-only", "Store cannot be written"),
    errors.StorageDamaged: Kind(503, "storage-damaged", "Store is damaged"),
    errors.SchemaTooNew: Kind(503, "schema-too-new", "Store was written by a newer version"),
}
"""Of every leaf of the error tree."""

FALLBACKS: Mapping[type[errors.BifocalError], Kind] = {
    errors.StorageError: Kind(503, "storage-error", "Store cannot be used"),
    errors.InvalidInput: Kind(422, "invalid-request", "Request is outside of what is allowed"),
    errors.NotFound: Kind(404, "not-found", "Not found"),
    errors.Conflict: Kind(409, "conflict", "Conflict with what is stored"),
}
"""Of inner classes that are raised themselves."""

HTTP_KINDS: Mapping[int, Kind] = {
    kind.status: kind
    for kind in (
        Kind(400, "malformed-request", "Request cannot be read"),
        Kind(404, "no-such-path", "No such path"),
        Kind(405, "method-not-allowed", "Method not allowed here"),
        Kind(406, "not-acceptable", "Not available in this form"),
        Kind(413, "body-too-large", "Body is too large"),
        Kind(415, "unsupported-media-type", "Media type is not supported"),
        Kind(422, "invalid-request", "Request is outside of what is allowed"),
        Kind(500, "internal-error", "Internal error"),
        Kind(503, "not-ready", "Service is not ready"),
    )
}
"""Of what goes wrong in HTTP itself, before the product is asked."""

Location = Sequence[str | int]


def problem_response(
    kind: Kind,
    detail: str,
    *,
    request_id: str | None,
    located: Sequence[tuple[Location, str]] = (),
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, object] | None = None,
) -> Response:
    """A problem document. ASCII, so that any string of the request can be quoted in it."""
    body: dict[str, object] = {
        "type": kind.type,
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "request_id": request_id,
        **(members or {}),
    }
    if located:
        body["errors"] = [{"location": list(where), "message": message} for where, message in located]
    content = json.dumps(body, ensure_ascii=True, allow_nan=False).encode()
    return Response(content, kind.status, dict(headers or {}), MEDIA_TYPE)


def kind_of(error: errors.BifocalError) -> Kind:
    for ancestor in type(error).__mro__:
        if kind := KINDS.get(ancestor) or FALLBACKS.get(ancestor):
            return kind
    return HTTP_KINDS[500]


def install(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(errors.BifocalError, _on_bifocal_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


def request_id(request: Request) -> str | None:
    """As given to the request by the middleware."""
    return request.scope.get("request_id")


async def _on_bifocal_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.BifocalError)
    kind = kind_of(error)
    headers = {"Retry-After": "5"} if kind.status in (503, 507) else {}
    if isinstance(error, errors.Unauthenticated):
        # The connection ends: a server reads the rest of a refused body and throws it away.
        headers = {"WWW-Authenticate": 'Bearer realm="bifocal"', "Connection": "close"}
    if isinstance(error, errors.Overloaded | errors.RateLimited):
        headers["Retry-After"] = str(error.retry_after_s)
    elif kind.status >= 500:
        logger.error("%s", error)
    members: dict[str, object] = {}
    if isinstance(error, errors.TextTooLong):
        members = {"n_tokens": error.n_tokens, "max_tokens": error.max_tokens}
    where = error.where if isinstance(error, errors.InvalidInput) else ()
    return problem_response(
        kind,
        f"{_dotted(where)}: {error}" if where else str(error),
        request_id=request_id(request),
        located=[(["body", *where], str(error))] if where else [],
        headers=headers,
        members=members,
    )


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return invalid_request(error.errors(), request_id=request_id(request))


def invalid_request(found: Sequence[Any], *, request_id: str | None) -> Response:
    """From pydantic's list of errors."""
    located = [(_location(each["loc"]), _message(each)) for each in found[:100]]
    first = f"{_dotted(located[0][0])}: {located[0][1]}" if located else "invalid"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return problem_response(HTTP_KINDS[422], first + more, request_id=request_id, located=located)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = HTTP_KINDS.get(error.status_code) or Kind(error.status_code, "http-error", str(error.detail))
    detail = str(error.detail)
    headers = dict(error.headers or {})
    if kind.status == 404:
        detail = f"there is nothing at {request.url.path}; /docs lists all paths"
    elif kind.status == 405:
        headers["Allow"] = ", ".join(_allowed_methods(request))
        detail = f"{request.method} is not allowed here; allowed: {headers['Allow']}"
    return problem_response(kind, detail, request_id=request_id(request), headers=headers)


def _allowed_methods(request: Request) -> Sequence[str]:
    """Of all endpoints of this path; a router knows only those of the first."""
    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    app = request.scope["app"]
    return [
        method
        for method in methods
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in app.router.routes
        )
    ]


def _location(where: Sequence[str | int]) -> Location:
    """Without pydantic's names of union branches, which mean nothing to the sender."""
    return [step for step in where if not (isinstance(step, str) and ("[" in step or step in _BRANCHES))]


_BRANCHES = frozenset({"str", "int", "float", "bool", "nullable"})


def _message(found: Mapping[str, Any]) -> str:
    if found["type"] == "extra_forbidden":
        return "is not a known field here"
    if found["type"] == "missing":
        return "is missing"
    return str(found["msg"]).removeprefix("Value error, ")


def _dotted(where: Location) -> str:
    return ".".join(str(step) for step in where)


def responses(*statuses: Literal[400, 404, 409, 413, 415, 507]) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI document: the problems an endpoint answers, beside those that all share."""
    titles = {
        400: "The request cannot be read: not UTF-8, not JSON, or a malformed path.",
        404: "Something that the path or the body names does not exist.",
        409: "In conflict with what is stored; the detail names the way out.",
        413: "The body is larger than `max_body_bytes`.",
        415: "The body has a media type that this endpoint does not read.",
        422: "Understood but refused; `errors` names each location.",
        500: "A fault of the service. The log has the cause under the request id.",
        503: "Busy, still loading, or the store cannot be used; `Retry-After` says when to try again.",
        507: "No space left; nothing was written.",
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    documented: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, 400, 422, 500, 503}):
        documented[status] = {"description": titles[status], "content": content}
        if status == 503:
            documented[status]["headers"] = {
                "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            }
    return documented
