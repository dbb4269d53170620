"""Spans of requests and of the stages of searches, for OpenTelemetry. Off, nothing of its SDK is imported."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables; one of them turns traces on. Others of its variables count, too."""
DISABLED = "OTEL_SDK_DISABLED"

SetStatus = Callable[[int], None]


class Tracing(Protocol):
    def request(self, scope: Scope) -> AbstractContextManager[SetStatus]:
        """A span around a request, a child of the caller's where its headers name one."""

    def stages(self, timings_ms: Mapping[str, float]) -> None:
        """Spans of stages that ended just now, one after the other; `total` is no stage."""

    def close(self) -> None:
        """Send what was not sent yet."""


def tracing_of_environment() -> Tracing | None:
    """None where the environment names no collector, or where OpenTelemetry is not installed."""
    named = [name for name in ENDPOINTS if os.environ.get(name)]
    if not named or os.environ.get(DISABLED, "").lower() == "true":
        return None
    try:
        module = import_module("app.api.opentelemetry_traces")
    except ImportError as error:
        logger.warning("%s is set, but there are no traces without bifocal[otel]: %s", named[0], error)
        return None
    tracing: Tracing = module.open_tracing()
    return tracing


class Traces:
    def __init__(self, open_tracing: Callable[[], Tracing | None] = tracing_of_environment) -> None:
        self._open = open_tracing
        self.tracing: Tracing | None = None

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """On from here to the end, if at all."""
        self.tracing = self._open()
        try:
            yield
        finally:
            tracing, self.tracing = self.tracing, None
            if tracing is not None:
                tracing.close()

    def stages(self, timings_ms: Mapping[str, float]) -> None:
        if self.tracing is not None:
            self.tracing.stages(timings_ms)


class TracedRequests:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tracing = self._traces.tracing
        if tracing is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with tracing.request(scope) as set_status:

            async def send_noting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    set_status(message["status"])
                await send(message)

            await self._app(scope, receive, send_noting)
