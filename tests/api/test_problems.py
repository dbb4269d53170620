"""Every error is a problem document, whatever was wrong with the request."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import errors, logs
from app.api.problems import FALLBACKS, KINDS, TYPE_PREFIX, kind_of
from tests.api.stand_up import assert_problem, client_of, settings_in
from tests.substitutes import WordHashEmbedder

SEARCH = "/v1/collections/demo/search/asymmetric"
JSON = {"Content-Type": "application/json"}


def leaves(error: type[errors.BifocalError]) -> Iterator[type[errors.BifocalError]]:
    """Of `app.errors`; errors of the command line and of tests are not answered over HTTP."""
    children = [child for child in error.__subclasses__() if child.__module__ == errors.__name__]
    for child in children:
        yield from leaves(child)
    if not children:
        yield error


def test_every_leaf_of_the_error_tree_has_a_status() -> None:
    assert set(KINDS) == set(leaves(errors.BifocalError))


def test_every_kind_of_problem_has_its_own_slug() -> None:
    slugs = [kind.slug for kind in [*KINDS.values(), *FALLBACKS.values()]]
    assert len(set(slugs)) == len(slugs)


def test_an_error_gets_the_status_of_its_nearest_mapped_ancestor() -> None:
    class VeryFull(errors.StorageFull):
        pass

    assert kind_of(VeryFull("full")).slug == "storage-full"
    assert kind_of(errors.StorageError("broken")).slug == "storage-error"
    assert kind_of(errors.BifocalError("?")).status == 500


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "line 1"),
        (b'{"query": NaN}', "NaN"),
        (b'{"query": "x", "top_k": Infinity}', "Infinity"),
        (b'{"query": "x", "query": "y"}', "'query' is there twice"),
        (b'{"query": "\xff"}', "not UTF-8"),
        ('{"query": "x"}'.encode("utf-16"), "not UTF-8"),
        (b'\xef\xbb\xbf{"query": "x"}', "BOM"),
        (b'{"query": "\\ud800"}', "surrogate"),
        (b'{"query": "x", "\\udfff": 1}', "surrogate"),
        (b"[" * 150_000, "nested"),
        (b'{"a":' * 30_000, "nested"),
        (b'{"query": "x", "top_k": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
def test_a_body_that_is_not_json_is_400_with_the_reason(client: TestClient, body: bytes, reason: str) -> None:
    for url in (SEARCH, "/v1/collections/demo/documents"):
        assert (
            reason
            in assert_problem(client.post(url, content=body, headers=JSON), 400, "malformed-request")[
                "detail"
            ]
        )


def test_a_name_twice_among_very_many_is_found_in_linear_time(client: TestClient) -> None:
    names = [*map(str, range(20_000)), "19999"]
    body = "{" + ",".join(f'"{name}":0' for name in names) + "}"
    problem = assert_problem(client.post(SEARCH, content=body, headers=JSON), 400, "malformed-request")
    assert "'19999' is there twice" in problem["detail"]


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({}, ["body", "query"]),
        ({"query": None}, ["body", "query"]),
        ({"query": 5}, ["body", "query"]),
        ({"query": ["x"]}, ["body", "query"]),
        ({"query": "x", "top_k": "5"}, ["body", "top_k"]),
        ({"query": "x", "top_k": 5.5}, ["body", "top_k"]),
        ({"query": "x", "top_k": True}, ["body", "top_k"]),
        ({"query": "x", "top_k": 0}, ["body", "top_k"]),
        ({"query": "x", "top_k": 1001}, ["body", "top_k"]),
        ({"query": "x", "limit": 5}, ["body", "limit"]),
        ({"query": "x" * 100_001}, ["body", "query"]),
        ([], ["body"]),
        ("x", ["body"]),
        (None, ["body"]),
    ],
)
def test_a_body_outside_its_schema_is_422_with_the_location(
    client: TestClient, body: Any, location: list[str]
) -> None:
    problem = assert_problem(client.post(SEARCH, json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == location


@pytest.mark.parametrize(
    "path", ["/v1/jobs?limits=5&limit=5", "/livez?x=", "/v1/collections/demo/documents?Limit=1"]
)
def test_an_unknown_query_parameter_is_refused_with_the_known_ones(client: TestClient, path: str) -> None:
    problem = assert_problem(client.get(path), 422, "invalid-request")
    assert problem["errors"][0]["location"][0] == "query"
    assert "known" in problem["detail"]


def test_a_missing_body_is_422(client: TestClient) -> None:
    assert_problem(client.post(SEARCH), 422, "invalid-request")


def test_a_body_of_another_media_type_is_415(client: TestClient) -> None:
    answer = client.post(SEARCH, content=b'{"query": "x"}', headers={"Content-Type": "text/plain"})
    assert_problem(answer, 415, "unsupported-media-type")
    assert_problem(client.post(SEARCH, content=b'{"query": "x"}'), 415, "unsupported-media-type")


def test_a_charset_of_json_is_no_obstacle(client: TestClient) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post(SEARCH, content=b'{"query": "x"}', headers=headers).status_code == 200


@pytest.mark.parametrize("is_announced", [True, False])
@pytest.mark.parametrize("path", [SEARCH, "/v1/collections/demo/documents", "/v1/collections/demo/files"])
def test_a_body_over_the_limit_is_413(client: TestClient, path: str, is_announced: bool) -> None:
    body = b'{"query": "' + b"x" * 200_001 + b'"}'
    is_upload = path.endswith("files")
    headers = {"Content-Type": "multipart/form-data; boundary=x"} if is_upload else JSON
    if is_upload:
        body = (
            b'--x\r\nContent-Disposition: form-data; name="files"; filename="f"\r\n\r\n'
            + body
            + b"\r\n--x--\r\n"
        )
    content = body if is_announced else iter([body[:150_000], body[150_000:]])
    answer = client.post(path, content=content, headers=headers)
    assert "200000 bytes" in assert_problem(answer, 413, "body-too-large")["detail"]


def test_an_unknown_path_is_404(client: TestClient) -> None:
    for path in ("/", "/v1", "/v1/", "/v1/collections/", "/v1/jobs/", "/v2/collections", "/docs/"):
        assert_problem(client.get(path), 404, "no-such-path")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/collections/demo", "GET, PUT, DELETE"),
        ("PUT", "/v1/collections/demo/documents", "GET, POST"),
        ("POST", "/v1/collections/demo/documents/x", "GET, PUT, DELETE"),
        ("GET", SEARCH, "POST"),
        ("POST", "/livez", "GET"),
    ],
)
def test_a_wrong_method_is_405_with_all_allowed_ones(
    client: TestClient, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/%ff", "/v1/collections/demo/documents/%C3%28", "/v1/jobs/%ed%a0%80"])
def test_a_path_that_is_not_utf8_is_400(client: TestClient, path: str) -> None:
    assert_problem(client.get(path), 400, "malformed-request")


def test_a_fault_is_500_without_internals(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(WordHashEmbedder):
        def encode_queries(self, texts: object, *, truncate: bool = True) -> Any:
            raise RuntimeError("secret detail")

    caplog.handler.setFormatter(logs.TextLines())
    with client_of(settings_in(tmp_path), embedder=Faulty()) as client:
        client.put("/v1/collections/demo")
        answer = client.post(SEARCH, json={"query": "x"}, headers={"X-Request-Id": "abc"})
    assert_problem(answer, 500, "internal-error")
    assert "secret" not in answer.text
    assert "abc" in caplog.text
    assert "secret detail" in caplog.text


def test_overload_is_503_with_retry_after(tmp_path: Path) -> None:
    class Busy(WordHashEmbedder):
        def encode_queries(self, texts: object, *, truncate: bool = True) -> Any:
            raise errors.Overloaded("64 texts are waiting", retry_after_s=3)

    with client_of(settings_in(tmp_path), embedder=Busy()) as client:
        client.put("/v1/collections/demo")
        answer = client.post(SEARCH, json={"query": "x"})
    assert_problem(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "3"


def test_a_text_too_long_is_422_with_its_count_and_the_limit(tmp_path: Path) -> None:
    class Strict(WordHashEmbedder):
        def encode_queries(self, texts: object, *, truncate: bool = True) -> Any:
            raise errors.TextTooLong("text 0 is long", n_tokens=300, max_tokens=256, where=("texts", 0))

    with client_of(settings_in(tmp_path), embedder=Strict()) as client:
        client.put("/v1/collections/demo")
        problem = assert_problem(
            client.post(SEARCH, json={"query": "x", "truncate": False}), 422, "text-too-long"
        )
    assert (problem["n_tokens"], problem["max_tokens"]) == (300, 256)
    assert problem["errors"][0]["location"] == ["body", "query"]


def test_a_collection_of_another_model_is_409_with_both_named(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        client.put("/v1/collections/demo")
    with client_of(settings_in(tmp_path), embedder=WordHashEmbedder(fingerprint="word-hash-2")) as client:
        problem = assert_problem(client.post(SEARCH, json={"query": "x"}), 409, "fingerprint-mismatch")
    assert "word-hash-1" in problem["detail"]
    assert "word-hash-2" in problem["detail"]


def test_a_problem_can_quote_any_string(client: TestClient) -> None:
    answer = client.post(SEARCH, content=json.dumps({"query": "x", "\u202e\x00\U0001f600": 1}), headers=JSON)
    problem = assert_problem(answer, 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["body", "\u202e\x00\U0001f600"]
    assert answer.content.isascii()


def test_types_of_problems_share_a_prefix() -> None:
    assert all(kind.type.startswith(TYPE_PREFIX) for kind in KINDS.values())
