"""Health, models, and what surrounds every request."""

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app import __version__
from app.api.middleware import Faults
from app.errors import ModelUnavailable
from app.main import create_app
from app.settings import Settings
from tests.api.stand_up import assert_problem, client_of, settings_in, worker_of
from tests.project.repository import read
from tests.reading_substitutes import without_reading
from tests.substitutes import WordHashEmbedder
from tests.text_substitutes import without_texts


def test_ready_with_store_model_and_worker(client: TestClient) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["checks"] == {
        "store": "ok",
        "embedder": "ok",
        "reading": "ok",
        "texts": "ok",
        "worker": "ok",
    }


def test_not_ready_without_a_worker(idle_client: TestClient) -> None:
    problem = assert_problem(idle_client.get("/readyz"), 503, "not-ready")
    assert problem["checks"]["store"] == problem["checks"]["embedder"] == "ok"
    assert "bifocal worker" in problem["checks"]["worker"]


def test_while_the_model_is_loading_the_service_lives_but_is_not_ready(tmp_path: Path) -> None:
    may_load = threading.Event()

    def load(_: Settings) -> WordHashEmbedder:
        may_load.wait(30)
        return WordHashEmbedder()

    settings = settings_in(tmp_path)
    with (
        worker_of(settings),
        TestClient(
            create_app(settings, load=load, load_reading=without_reading, load_texts=without_texts)
        ) as client,
    ):
        try:
            assert client.get("/livez").status_code == 200
            problem = assert_problem(client.get("/readyz"), 503, "not-ready")
            assert "being loaded" in problem["checks"]["embedder"]
            answer = client.put("/v1/collections/demo")
            assert_problem(answer, 503, "overloaded")
            assert answer.headers["retry-after"] == "1"
        finally:
            may_load.set()
        while client.get("/readyz").status_code != 200:
            pass


@pytest.mark.parametrize(
    ("error", "detail"),
    [(ModelUnavailable("weights.bin is missing"), "weights.bin is missing"), (RuntimeError("secret"), "log")],
)
def test_a_model_that_cannot_be_loaded_is_named_where_it_is_needed(
    tmp_path: Path, error: Exception, detail: str
) -> None:
    def load(_: Settings) -> WordHashEmbedder:
        raise error

    with TestClient(
        create_app(settings_in(tmp_path), load=load, load_reading=without_reading, load_texts=without_texts)
    ) as client:
        problem = assert_problem(client.put("/v1/collections/demo"), 503, "model-unavailable")
        assert detail in problem["detail"]
        assert "secret" not in problem["detail"]
        assert detail in assert_problem(client.get("/readyz"), 503, "not-ready")["checks"]["embedder"]
        assert client.get("/v1/jobs").status_code == 200


def test_models_state_every_limit_with_its_unit(client: TestClient) -> None:
    body = client.get("/v1/models").json()
    assert body["models"][0]["role"] == "embedder"
    assert body["models"][0]["fingerprint"] == "word-hash-1"
    assert body["limits"]["max_body_bytes"] == 200_000
    assert body["limits"]["max_query_tokens"] == 256
    units = ("_bytes", "_chars", "_tokens", "_s", "_top_k", "_batch", "_per_hit")
    of_things = ("_candidates", "_answers", "_contexts", "_texts", "_examples", "_labels")
    assert all(name.endswith(units + of_things) for name in body["limits"])


def test_the_version_is_that_of_the_project() -> None:
    assert f'version = "{__version__}"' in read("pyproject.toml")


@pytest.mark.parametrize("path", ["/livez", "/nope", "/docs", "/v1/collections/x"])
def test_every_response_carries_an_id_its_time_and_safe_defaults(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert len(headers["x-request-id"]) == 32
    assert headers["server-timing"].startswith("total;dur=")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["content-security-policy"].startswith("default-src '")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_a_sane_request_id_is_kept_and_another_one_replaced(client: TestClient) -> None:
    kept = client.get("/livez", headers={"X-Request-Id": "trace-1/2:3"})
    assert kept.headers["x-request-id"] == "trace-1/2:3"
    for odd in ("", "a b", "x" * 129, "<script>", "é".encode()):
        replaced = client.get(
            "/livez", headers={b"X-Request-Id": odd if isinstance(odd, bytes) else odd.encode()}
        )
        assert len(replaced.headers["x-request-id"]) == 32


# Cross-origin requests ------------------------------------------------------------------------------

PREFLIGHT = {
    "Origin": "https://app.example",
    "Access-Control-Request-Method": "PUT",
    "Access-Control-Request-Headers": "authorization, content-type, x-stainless-lang, x-stainless-os",
}


def test_without_allowed_origins_there_are_no_cors_headers(client: TestClient) -> None:
    answer = client.get("/livez", headers={"Origin": "https://app.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert_problem(client.options("/v1/collections/demo", headers=PREFLIGHT), 405, "method-not-allowed")


def test_a_preflight_of_an_allowed_origin_passes_with_the_headers_of_sdks(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path, cors_origins=("https://app.example",))) as client:
        answer = client.options("/v1/collections/demo", headers=PREFLIGHT)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "x-stainless-os" in answer.headers["access-control-allow-headers"]
        assert "PUT" in answer.headers["access-control-allow-methods"]
        error = client.get("/v1/jobs/x", headers={"Origin": "https://app.example"})
        assert error.headers["access-control-allow-origin"] == "https://app.example"
        assert "X-Request-Id" in error.headers["access-control-expose-headers"]
        other = client.options(
            "/v1/collections/demo", headers={**PREFLIGHT, "Origin": "https://evil.example"}
        )
        assert "access-control-allow-origin" not in other.headers


FORM = {"files": ("a.txt", b"Planted.", "text/plain")}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_origin_may_not_send_a_form(client: TestClient, site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Origin": "https://evil.example"}
    answer = client.post("/v1/collections/demo/files", files=FORM, headers=headers)
    assert "cors_origins" in assert_problem(answer, 403, "forbidden")["detail"]
    assert client.get("/v1/collections", headers=headers).status_code == 200


def test_pages_of_the_service_and_of_allowed_origins_may(tmp_path: Path) -> None:
    allowed = {"Sec-Fetch-Site": "cross-site", "Origin": "https://app.example"}
    with client_of(settings_in(tmp_path, cors_origins=("https://app.example",))) as client:
        client.put("/v1/collections/demo")
        for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, allowed, {}):
            answer = client.post("/v1/collections/demo/files", files=FORM, headers=headers)
            assert answer.status_code == 202
        other = {**allowed, "Origin": "null"}
        assert client.post("/v1/collections/demo/files", files=FORM, headers=other).status_code == 403


def test_origins_are_read_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIFOCAL_CORS_ORIGINS", "https://a.example, http://localhost:3000")
    assert Settings.from_environment().cors_origins == ("https://a.example", "http://localhost:3000")


# Clients that go away, and load --------------------------------------------------------------------


async def never_called(*_: object) -> Any:
    raise AssertionError


def test_a_client_that_goes_away_is_no_failure_of_the_service(caplog: pytest.LogCaptureFixture) -> None:
    async def read_body(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ClientDisconnect

    anyio.run(Faults(read_body).__call__, {"type": "http", "path": "/x"}, never_called, never_called)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_readiness_is_told_while_searches_have_all_threads(client: TestClient) -> None:
    may_go_on = threading.Event()

    async def wait_in_thread() -> None:
        await anyio.to_thread.run_sync(may_go_on.wait)

    async def take_all_threads() -> None:
        async with anyio.create_task_group() as searches:
            for _ in range(int(anyio.to_thread.current_default_thread_limiter().total_tokens)):
                searches.start_soon(wait_in_thread)

    assert client.portal is not None
    taken = client.portal.start_task_soon(take_all_threads)
    release = threading.Timer(10, may_go_on.set)
    release.start()
    try:
        assert client.get("/readyz").status_code == 200
        assert not may_go_on.is_set()
    finally:
        may_go_on.set()
        release.cancel()
        taken.result()
