"""The only module that knows OpenTelemetry. Needs the extra `otel`."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.datastructures import Headers
from starlette.types import Scope

from app import __version__
from app.api.traces import SetStatus

NS_PER_MS = 1_000_000


class OpenTelemetryTraces:
    """Implements `app.api.traces.Tracing`. Nothing of headers, bodies, queries or ids is in a span."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("bifocal", __version__)

    @contextmanager
    def request(self, scope: Scope) -> Iterator[SetStatus]:
        method: str = scope["method"]
        with self._tracer.start_as_current_span(
            method,
            context=extract(dict(Headers(scope=scope))),
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
        ) as span:

            def set_status(status: int) -> None:
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(trace.StatusCode.ERROR)

            try:
                yield set_status
            finally:
                _describe(span, method, scope)

    def stages(self, timings_ms: Mapping[str, float]) -> None:
        start = time.time_ns() - round(timings_ms.get("total", 0.0) * NS_PER_MS)
        for stage, ms in timings_ms.items():
            if stage == "total":
                continue
            end = start + round(ms * NS_PER_MS)
            self._tracer.start_span(stage, start_time=start).end(end)
            start = end

    def close(self) -> None:
        self._provider.shutdown()


def open_tracing() -> OpenTelemetryTraces:
    """As OpenTelemetry's variables say; sends in a thread of its own."""
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "bifocal"}
    provider = TracerProvider(resource=Resource.create({**named, "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OpenTelemetryTraces(provider)


def _describe(span: trace.Span, method: str, scope: Scope) -> None:
    """By what is known once the request has been routed."""
    if request_id := scope.get("request_id"):
        span.set_attribute("bifocal.request_id", request_id)
    if operation := scope.get("operation"):
        span.set_attribute("bifocal.operation", operation)
    route = getattr(scope.get("route"), "path", None)
    if route is not None:
        span.set_attribute("http.route", route)
        span.update_name(f"{method} {route}")
