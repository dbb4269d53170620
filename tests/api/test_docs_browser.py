"""/docs and /redoc without internet."""

import re

import pytest
from starlette.testclient import TestClient

from app.api import docs_browser
from tests.api.stand_up import assert_problem

ASSETS = {
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
    "redoc.standalone.js": "text/javascript; charset=utf-8",
    "favicon.png": "image/png",
}


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_a_page_names_no_other_host(client: TestClient, path: str) -> None:
    assert not re.search(r"https?:|//[a-z]", client.get(path).text)


@pytest.mark.parametrize(("name", "media_type"), ASSETS.items())
def test_scripts_and_styles_come_from_the_service(client: TestClient, name: str, media_type: str) -> None:
    answer = client.get(f"/docs-assets/{name}")
    assert answer.headers["content-type"] == media_type
    assert len(answer.content) > 1000


def test_a_page_without_its_package_says_which_one_to_install(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs_browser, "find_spec", lambda _: None)
    problem = assert_problem(client.get("/docs-assets/swagger-ui.css"), 503, "not-ready")
    assert "pip install fastapi-offline" in problem["detail"]


def test_no_other_file_can_be_fetched(client: TestClient) -> None:
    for name in ("core.py", "..%2Fcore.py", "%2E%2E/core.py", ""):
        assert_problem(client.get(f"/docs-assets/{name}"), 404, "no-such-path")


def test_the_style_sheet_loads_nothing_from_elsewhere(client: TestClient) -> None:
    assert not re.search(r"@import|url\(['\"]?https?:", client.get("/docs-assets/swagger-ui.css").text)
