"""Behind a reverse proxy that publishes the service under a prefix."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem, client_of, settings_in

DOCUMENT = {"documents": [{"id": "a", "text": "x"}]}


@pytest.mark.parametrize("is_stripped", [True, False])
def test_with_root_path_all_links_carry_the_prefix(tmp_path: Path, is_stripped: bool) -> None:
    prefix = "" if is_stripped else "/search"
    with client_of(settings_in(tmp_path, root_path="/search/")) as client:
        assert client.get(f"{prefix}/livez").status_code == 200
        assert client.put(f"{prefix}/v1/collections/demo").status_code == 201
        answer = client.post(f"{prefix}/v1/collections/demo/documents", json=DOCUMENT)
        assert answer.headers["location"].startswith("/search/v1/jobs/")
        assert client.get(f"{prefix}/v1/collections/demo/documents/a%2Fb").status_code == 404


def test_a_stripping_proxy_may_say_its_prefix(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        client.put("/v1/collections/demo")
        for prefix, location in (
            ("/search", "/search/v1/jobs/"),
            ("//evil.example", "/v1/jobs/"),
            ("x", "/v1/jobs/"),
        ):
            headers = {"X-Forwarded-Prefix": prefix}
            answer = client.post("/v1/collections/demo/documents", json=DOCUMENT, headers=headers)
            assert answer.headers["location"].startswith(location)


def test_a_root_path_must_begin_with_a_slash(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must begin with a slash"):
        settings_in(tmp_path, root_path="search")


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_links_of_the_docs_pages_are_relative_so_any_prefix_works(client: TestClient, path: str) -> None:
    page = client.get(path).text
    links = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert links
    assert all(not link.startswith(("/", "http")) for link in links)
    for link in links:
        assert client.get(f"/{link}").status_code == 200
    assert '"openapi.json"' in page


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_a_proxy_that_leaves_the_prefix_finds_the_docs_pages_and_all_they_load(
    tmp_path: Path, path: str
) -> None:
    with client_of(settings_in(tmp_path, root_path="/search")) as client:
        page = client.get(f"/search{path}")
        assert page.status_code == 200
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.text):
            assert client.get(f"/search/{link}").status_code == 200
        assert client.get("/search/openapi.json").json()["servers"][0]["url"] == "."


def test_the_schema_names_its_server_relative_to_itself(client: TestClient) -> None:
    assert client.get("/openapi.json").json()["servers"][0]["url"] == "."


@pytest.mark.parametrize("path", ["/docs/", "/v1/collections/", "/v1/jobs/"])
def test_no_redirect_adds_or_removes_a_slash(client: TestClient, path: str) -> None:
    assert_problem(client.get(path, follow_redirects=False), 404, "no-such-path")
