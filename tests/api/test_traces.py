"""Spans of requests and of the stages of searches, as OpenTelemetry's own exporters get them."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from app.api.opentelemetry_traces import OpenTelemetryTraces
from app.api.traces import Traces
from tests.api.stand_up import client_of, fill, settings_in, worker_of
from tests.project.repository import ROOT
from tests.reading_substitutes import overlap_models

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEARCH = "/v1/collections/demo/search/asymmetric"
WITHOUT_COLLECTOR = """
import sys
from pathlib import Path
from tests.api.stand_up import client_of, settings_in
with client_of(settings_in(Path(sys.argv[1]))) as client:
    assert client.get("/livez").status_code == 200
prefixes = ("opentelemetry.sdk", "opentelemetry.exporter")
print(sorted(name for name in sys.modules if name.startswith(prefixes)))
"""


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def traced(exporter: InMemorySpanExporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = settings_in(tmp_path_factory.mktemp("traces"))
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with (
        worker_of(settings),
        client_of(
            settings, reading=overlap_models(), traces=Traces(lambda: OpenTelemetryTraces(provider))
        ) as client,
    ):
        fill(client)
        yield client


@pytest.fixture
def client(traced: TestClient, exporter: InMemorySpanExporter) -> TestClient:
    exporter.clear()
    return traced


def spans(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> Mapping[str, object]:
    return dict(span.attributes or {})


def test_a_request_is_a_span_named_by_its_route(client: TestClient, exporter: InMemorySpanExporter) -> None:
    answer = client.get("/v1/collections/demo/documents/a%2Fb")
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/collections/{collection}/documents/{document_id:path}"
    assert span.kind.name == "SERVER"
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/v1/collections/{collection}/documents/{document_id:path}",
        "bifocal.operation": "get_document",
        "bifocal.request_id": answer.headers["x-request-id"],
    }


def test_the_stages_of_a_search_follow_each_other_inside_its_span(
    client: TestClient, exporter: InMemorySpanExporter
) -> None:
    timings = client.post(SEARCH, json={"query": "river"}).json()["timings_ms"]
    found = spans(exporter)
    request = found.pop("POST /v1/collections/{collection}/search/asymmetric")
    assert list(found) == [stage for stage in timings if stage != "total"]
    ends = [span.end_time for span in found.values()]
    starts = [span.start_time for span in found.values()]
    assert starts[1:] == ends[:-1]
    for span in found.values():
        assert span.parent is not None
        assert request.context is not None
        assert span.parent.span_id == request.context.span_id


def test_an_answer_has_its_stages_too(client: TestClient, exporter: InMemorySpanExporter) -> None:
    client.post(
        "/v1/collections/demo/answer", json={"question": "What crosses the river?"}
    ).raise_for_status()
    assert {"encode", "retrieve", "read"} <= set(spans(exporter))


def test_a_request_belongs_to_the_trace_of_its_caller(
    client: TestClient, exporter: InMemorySpanExporter
) -> None:
    client.get("/livez", headers={"traceparent": PARENT})
    (span,) = exporter.get_finished_spans()
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]


def test_a_path_that_does_not_exist_has_a_span_without_it(
    client: TestClient, exporter: InMemorySpanExporter
) -> None:
    client.get("/v1/secret-of-somebody")
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET"
    assert "secret" not in str(attributes(span))


def test_no_sdk_is_imported_without_a_collector(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COLLECTOR, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@contextmanager
def collector(received: list[tuple[str, bytes]]) -> Iterator[str]:
    """An OTLP receiver over HTTP: its endpoint."""

    class Receive(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receive) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_spans_reach_the_collector_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[tuple[str, bytes]] = []
    with collector(received) as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        with client_of(settings_in(tmp_path)) as client:
            client.get("/livez")
    assert [path for path, _ in received] == ["/v1/traces"]
    assert b"GET /livez" in received[0][1]
    assert b"bifocal" in received[0][1]


@pytest.mark.parametrize("disabled", ["true", "TRUE"])
def test_opentelemetrys_own_switch_turns_traces_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disabled: str
) -> None:
    received: list[tuple[str, bytes]] = []
    with collector(received) as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_SDK_DISABLED", disabled)
        with client_of(settings_in(tmp_path)) as client:
            client.get("/livez")
    assert received == []


def test_without_the_extra_the_service_runs_and_says_how_to_get_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "app.api.opentelemetry_traces", None)
    with client_of(settings_in(tmp_path)) as client:
        assert client.get("/livez").status_code == 200
    assert "bifocal[otel]" in caplog.text
