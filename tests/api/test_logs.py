"""Log lines: their forms, the ids of requests in them, and what is never in them."""

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import logs
from app.engine.embedder import Embeddings
from app.logs import JsonLines, TextLines, log_config
from tests.api.stand_up import client_of, settings_in
from tests.substitutes import WordHashEmbedder


def record(message: str, *arguments: object, **fields: Any) -> logging.LogRecord:
    made = logging.getLogger("app.test").makeRecord(
        "app.test",
        logging.WARNING,
        "file.py",
        1,
        message,
        arguments,
        fields.pop("exc_info", None),
        extra=fields,
    )
    assert isinstance(made, logging.LogRecord)
    return made


def test_a_json_line_is_one_object_with_its_extra_fields() -> None:
    line = JsonLines().format(record('%s\n"x" é', "a", status=404, path=Path("/x")))
    assert "\n" not in line
    read = json.loads(line)
    assert read.pop("time").endswith("+00:00")
    assert read.pop("process") > 0
    assert read == {
        "level": "warning",
        "logger": "app.test",
        "message": 'a\n"x" é',
        "status": 404,
        "path": "/x",
    }


def test_a_json_line_has_the_traceback() -> None:
    try:
        int("broken")
    except ValueError:
        line = JsonLines().format(record("failed", exc_info=sys.exc_info()))
    assert "ValueError: invalid literal" in json.loads(line)["exception"]


def test_lines_of_a_request_have_its_id() -> None:
    mark = logs.request_id.set("r-1")
    try:
        assert json.loads(JsonLines().format(record("x")))["request_id"] == "r-1"
        assert TextLines().format(record("x")).endswith("WARNING app.test x request=r-1")
    finally:
        logs.request_id.reset(mark)
    assert "request" not in TextLines().format(record("x"))


@pytest.mark.parametrize(("form", "formatter"), [("text", TextLines), ("json", JsonLines)])
def test_the_setting_chooses_the_form(tmp_path: Path, form: str, formatter: type) -> None:
    assert log_config(settings_in(tmp_path, log_format=form))["formatters"]["line"]["()"] is formatter


def access_lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [each for each in caplog.records if each.name == "app.access"]


def test_a_request_has_a_line_without_headers_query_and_body(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.get("/v1/jobs?limit=7", headers={"Authorization": "Bearer hidden", "X-Request-Id": "r-2"})
    client.post("/v1/collections/demo/search/asymmetric", json={"query": "hidden river"})
    first, second = access_lines(caplog)
    assert (first.method, first.path, first.status, first.levelname) == ("GET", "/v1/jobs", 200, "DEBUG")
    assert second.status == 200
    own = "".join(each.getMessage() for each in caplog.records if each.name.startswith("app"))
    assert "hidden" not in own
    assert "limit=7" not in own


def test_refusals_and_failures_are_logged_at_info_and_other_answers_are_not(
    idle_client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    idle_client.get("/livez")
    idle_client.get("/nothing")
    idle_client.get("/readyz")
    assert [each.status for each in access_lines(caplog)] == [503]


def test_a_path_cannot_begin_a_line_of_its_own(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client.get("/x%0D%0AINFO%20forged")
    assert all(len(each.getMessage().splitlines()) == 1 for each in access_lines(caplog))


def test_threads_know_the_id_of_the_request_that_they_work_for(
    tmp_path: Path,
) -> None:
    class Broken(WordHashEmbedder):
        def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
            seen.append(logs.request_id.get())
            raise RuntimeError("broken")

    seen: list[str | None] = []
    with client_of(settings_in(tmp_path), embedder=Broken()) as client:
        client.put("/v1/collections/demo")
        headers = {"X-Request-Id": "r-3"}
        answer = client.post("/v1/collections/demo/search/asymmetric", json={"query": "x"}, headers=headers)
    assert answer.status_code == 500
    assert seen == ["r-3"]
