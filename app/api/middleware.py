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

from app import logs
from app.api.metrics import Metrics
from app.api.problems import HTTP_KINDS, problem_response

logger = logging.getLogger(__name__)
access_logger = logging.getLogger("app.access")

REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
KEPT_ESCAPES = re.compile(r"%(?=2[Ff]|25|0[Aa])")
"""Of slash, percent sign and line feed, at which patterns of routes stop."""

CLOSE = {"Connection": "close"}
"""Without it a server reads the rest of a refused body and throws it away."""


SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
DEFAULT_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Where the answer has none of its own: a browser that shows it as a page runs nothing."""
REMARKABLE = frozenset({401, 403, 429})
"""Refusals that an operator wants to see, beside all from 500 on."""


class Envelope:
    """Outermost: gives the request its id, and every response that id, its time and safe defaults.

    A client's own `X-Request-Id` is kept where it is short and plain. Every request is counted, and has a
    line in the log: at level info if it was refused or failed, else at level debug. Nothing of its headers,
    its query or its body is there.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope["request_id"] = request_id
        mark = logs.request_id.set(request_id)
        status = 0

        async def send_in_envelope(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                total_ms = 1000 * (time.perf_counter() - began)
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"server-timing", b"total;dur=%.2f" % total_ms),
                    *SAFE_HEADERS,
                ]
                headers = MutableHeaders(raw=message["headers"])
                for name, value in DEFAULT_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_in_envelope)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.count_request(scope.get("operation"), status, seconds)
            _log_access(scope, status, 1000 * seconds)
            logs.request_id.reset(mark)


def _log_access(scope: Scope, status: int, ms: float) -> None:
    """Status 0: the client went away before an answer."""
    level = logging.INFO if status in REMARKABLE or status >= 500 else logging.DEBUG
    if not access_logger.isEnabledFor(level):
        return
    key, client = scope.get("api_key"), scope.get("client")
    access = {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(ms, 2),
        "key": None if key is None else key.id,
        "client": None if client is None else client[0],
    }
    access_logger.log(level, "%s %a status=%d ms=%.2f key=%s client=%s", *access.values(), extra=access)


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
            logger.debug("client went away %a", scope["path"])
        except Exception:
            if scope["type"] != "http" or is_started:
                raise
            request_id = scope.get("request_id")
            logger.exception("unexpected failure %a", scope["path"])
            response = problem_response(
                HTTP_KINDS[500],
                "the service failed; its log has the cause under this request id",
                request_id=request_id,
            )
            await response(scope, receive, send)
