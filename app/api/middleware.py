"""What surrounds every request, as plain ASGI: each layer costs microseconds."""

import logging
import re
import time
import uuid
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import HTTP_KINDS, problem_response

logger = logging.getLogger(__name__)

REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
KEPT_ESCAPES = re.compile(r"%(?=2[Ff]|25|0[Aa])")
"""Of slash, percent sign and line feed, at which patterns of routes stop."""

CLOSE = {"Connection": "close"}
"""Without it a server reads the rest of a refused body and throws it away."""


class Envelope:
    """Outermost: gives the request its id, and every response that id, its time and safe defaults.

    A client's own `X-Request-Id` is kept where it is short and plain.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["request_id"] = request_id

        async def send_in_envelope(message: Message) -> None:
            if message["type"] == "http.response.start":
                total_ms = 1000 * (time.perf_counter() - began)
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"server-timing", b"total;dur=%.2f" % total_ms),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
                MutableHeaders(raw=message["headers"]).setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_in_envelope)


class Paths:
    """Makes every path segment data: an encoded slash does not separate segments.

    Servers decode a path before it is routed. Here `%2F`, `%25` and `%0A` stay encoded until the path has
    been routed; `app.api.parameters` decodes them.

    A reverse proxy may publish the service under a prefix and strip it or not. The setting `root_path`
    names it; without one a stripping proxy's `X-Forwarded-Prefix` counts. `public_url` adds it to links.
    """

    def __init__(self, app: ASGIApp, *, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            try:
                path = unquote(KEPT_ESCAPES.sub("%25", raw.decode("ascii")), errors="strict")
            except UnicodeDecodeError:
                response = problem_response(
                    HTTP_KINDS[400],
                    "the path is not percent-encoded UTF-8",
                    request_id=scope.get("request_id"),
                )
                await response(scope, receive, send)
                return
            if self._root_path and path.startswith(self._root_path + "/"):
                path = path.removeprefix(self._root_path)
            scope["path"] = path
            forwarded = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            scope["prefix"] = self._root_path or (forwarded if PREFIX.fullmatch(forwarded) else "")
        await self._app(scope, receive, send)


def public_url(scope: Scope, path: str) -> str:
    """The path as clients must ask for it."""
    prefix: str = scope["prefix"]
    return prefix + path


class BodyLimit:
    """Refuses a body as soon as it is known to be too large, announced or not."""

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        detail = f"at most {self._max_bytes} bytes are allowed (max_body_bytes); send smaller batches"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            response = problem_response(
                HTTP_KINDS[413], detail, request_id=scope.get("request_id"), headers=CLOSE
            )
            await response(scope, receive, send)
            return
        n_bytes = 0

        async def receive_limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            if message["type"] == "http.request":
                n_bytes += len(message.get("body", b""))
                if n_bytes > self._max_bytes:
                    raise HTTPException(413, detail, CLOSE)
            return message

        await self._app(scope, receive_limited, send)


class Faults:
    """Innermost: what nobody expected becomes a problem without internals, and a traceback in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False

        async def send_noticing(message: Message) -> None:
            nonlocal is_started
            is_started = is_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_noticing)
        except ClientDisconnect:
            logger.debug("client went away request=%s %s", scope.get("request_id"), scope["path"])
        except Exception:
            if scope["type"] != "http" or is_started:
                raise
            request_id = scope.get("request_id")
            logger.exception("unexpected failure request=%s %s", request_id, scope["path"])
            response = problem_response(
                HTTP_KINDS[500],
                "the service failed; its log has the cause under this request id",
                request_id=request_id,
            )
            await response(scope, receive, send)
