"""Bodies: strict JSON for endpoints with a schema, and streams for large ones, and answers."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import IO, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.api.access import admit

SPOOL_BYTES = 2**20
"""Of a body that are kept in memory; more goes to a temporary file."""
SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
"""The only way in for half of a surrogate pair: UTF-8 has none."""


def parse_json(body: bytes) -> Any:
    """JSON as RFC 8259 has it: UTF-8, no NaN, no name twice in an object, whole characters only.

    Raises:
        HTTPException: 400, saying what is wrong.
    """
    try:
        parsed = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
        if SURROGATE_ESCAPE.search(body):
            _check_characters(parsed)
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8: byte {error.start} is invalid") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise HTTPException(400, f"the body is not JSON: {error.msg} at {place}") from error
    except RecursionError as error:
        raise HTTPException(400, "the JSON is nested too deeply") from error
    except ValueError as error:  # a name twice, NaN, or an integer of more digits than Python reads
        message = str(error) if isinstance(error, _NotJson) else "a number has too many digits"
        raise HTTPException(400, f"the body is not JSON: {message}") from error
    return parsed


class _NotJson(ValueError):
    pass


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, n in counts.items() if n > 1)
        raise _NotJson(f"the name {twice[:60]!a} is there twice in one object")
    return parsed


def _check_characters(parsed: object) -> None:
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _NotJson("a string has half of a surrogate pair; whole Unicode characters are") from error


def _refuse(constant: str) -> Any:
    raise _NotJson(f"{constant} is not JSON; finite numbers are")


class _JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


class StrictRoute(APIRoute):
    """Refuses callers that may not do this, and what the endpoint does not know: query parameters, and bodies
    that are not strict JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        known = [field.alias for field in self.dependant.query_params]
        has_json = self.body_field is not None
        operation = self.operation_id
        assert operation is not None

        async def handle_strictly(request: Request) -> Response:
            request.scope["operation"] = operation
            await admit(request, operation)
            if request.scope["query_string"]:
                _check_names(request, known)
            if has_json:
                request = _JsonRequest(request.scope, request.receive)
                if await request.body():
                    require_media_type(request, "application/json")
                    await request.json()
            return await handle(request)

        return handle_strictly


def _check_names(request: Request, known: Sequence[str]) -> None:
    for name in request.query_params:
        if name not in known:
            allowed = f"known are {', '.join(known)}" if known else "there are none here"
            raise RequestValidationError(
                [{"type": "unknown", "loc": ("query", name), "msg": f"is not a known parameter; {allowed}"}]
            )


def media_type(request: Request) -> str:
    """Without its parameters, in lower case; empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_media_type(request: Request, *allowed: str) -> str:
    found = media_type(request)
    if found not in allowed:
        sent = ascii(found[:60]) if found else "none"
        raise HTTPException(415, f"the Content-Type is {sent}; this endpoint reads {' or '.join(allowed)}")
    return found


async def spooled_body(request: Request) -> AsyncIterator[IO[bytes]]:
    """The whole body, read before the endpoint runs, so that a slow client holds no thread."""
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        spool.seek(0)
        yield spool


def json_response(body: BaseModel, status: int = 200, **headers: str) -> Response:
    """Serialised once; names of headers are given with underscores."""
    return Response(
        body.model_dump_json(),
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        "application/json",
    )
