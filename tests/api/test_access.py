"""Keys: who gets in, and what they may do."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.access import OPEN, SCOPES, WITHOUT_COLLECTION
from app.api.bodies import StrictRoute
from app.keys import Scope, new_key
from app.main import create_app
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from tests.api.stand_up import DOCUMENTS, assert_problem, client_of, settings_in, worker_of

NewKey = Callable[..., dict[str, str]]
SEARCH = "/search/asymmetric"
QUERY = {"query": "river"}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    """A service that asks for keys, with a worker and the collections `demo` and `other`."""
    settings = settings_in(home)
    with worker_of(settings), client_of(settings) as client:
        client.put("/v1/collections/demo").raise_for_status()
        client.put("/v1/collections/other").raise_for_status()
        client.put("/v1/aliases/passing", json={"collection": "demo"}).raise_for_status()
        documents = {"documents": DOCUMENTS}
        client.post("/v1/collections/demo/documents", json=documents, headers={"Prefer": "wait=30"})
        stored = new_key("first", scopes=[Scope.ADMIN])[0]
        with_rows(home, lambda rows: rows.add_key(stored))
        yield client


def with_rows(home: Path, act: Callable[[SqliteRows], Any]) -> None:
    """As another process would."""
    rows = SqliteRows(home / "bifocal.db")
    act(rows)
    rows.close()


@pytest.fixture
def new_header(home: Path) -> NewKey:
    """Makes a key and gives the header that sends it."""

    def make(*scopes: Scope, collections: list[str] | None = None) -> dict[str, str]:
        stored, secret = new_key("test", scopes=scopes, collections=collections)
        with_rows(home, lambda rows: rows.add_key(stored))
        return bearer(secret)

    return make


def status(client: TestClient, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> int:
    return client.request(method, path, headers=headers, json=body).status_code


# Who gets in ------------------------------------------------------------------------------------


def test_without_a_key_nobody_gets_in_and_is_told_how(client: TestClient) -> None:
    answer = client.post(f"/v1/collections/demo{SEARCH}", json=QUERY)
    problem = assert_problem(answer, 401, "unauthenticated")
    assert "X-API-Key" in problem["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/docs", "/redoc", "/openapi.json"])
def test_probes_and_the_description_are_for_everyone(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200


def test_a_key_is_taken_from_either_header(client: TestClient, new_header: NewKey) -> None:
    secret = new_header(Scope.READ)["Authorization"].removeprefix("Bearer ")
    basic = {"Authorization": "Basic dTpw", "X-API-Key": secret}  # of a proxy in front
    for headers in (bearer(secret), {"authorization": f"bearer  {secret} "}, {"X-API-Key": secret}, basic):
        assert client.get("/v1/collections", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda secret: secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        lambda secret: secret + "A",
        lambda secret: secret[:-1],
        lambda secret: secret.upper(),
        lambda secret: "bfc_000000000000_" + secret[17:],
        lambda secret: secret[:0],
        lambda secret: secret.replace("_", "é"),
        lambda secret: secret * 100,
        lambda secret: f"{secret}, {secret}",
    ],
)
def test_what_is_not_quite_a_secret_is_refused(
    client: TestClient, new_header: NewKey, change: Callable[[str], str]
) -> None:
    secret = new_header(Scope.ADMIN)["Authorization"].removeprefix("Bearer ")
    for name, value in (("Authorization", "Bearer " + change(secret)), ("X-API-Key", change(secret))):
        answer = client.get("/v1/collections", headers={name.encode(): value.encode()})
        assert_problem(answer, 401, "unauthenticated")


def test_a_revoked_key_is_refused_from_the_next_request_on(
    client: TestClient, new_header: NewKey, home: Path
) -> None:
    headers = new_header(Scope.READ)
    assert client.get("/v1/collections", headers=headers).status_code == 200
    key_id = headers["Authorization"].split("_")[1]
    with_rows(home, lambda rows: rows.revoke_key(key_id))
    assert_problem(client.get("/v1/collections", headers=headers), 401, "unauthenticated")


def test_the_first_key_closes_the_service_and_revoking_it_does_not_open_it(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        assert client.get("/v1/collections").status_code == 200
        stored, secret = new_key("only", scopes=[Scope.ADMIN])
        with_rows(tmp_path, lambda rows: rows.add_key(stored))
        assert client.get("/v1/collections").status_code == 401
        assert client.get("/v1/collections", headers=bearer(secret)).status_code == 200
        with_rows(tmp_path, lambda rows: rows.revoke_key(stored.key.id))
        for headers in ({}, bearer(secret)):
            assert client.get("/v1/collections", headers=headers).status_code == 401


def test_a_refused_body_is_not_read(client: TestClient) -> None:
    answer = client.post("/v1/collections/demo/documents", content=b"{", headers={"Content-Type": "x/y"})
    assert_problem(answer, 401, "unauthenticated")
    assert answer.headers["connection"] == "close"


def test_no_log_line_has_a_secret(
    client: TestClient, new_header: NewKey, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    good = new_header(Scope.READ)
    secret = good["Authorization"].removeprefix("Bearer ")
    client.get("/v1/collections", headers=good)
    client.put("/v1/collections/x", headers=good)
    client.get("/v1/collections", headers={"X-API-Key": secret[:-2] + "zz"})
    assert secret[17:-2] not in caplog.text


def test_a_preflight_needs_no_key_and_refusals_can_be_read_by_allowed_pages(tmp_path: Path) -> None:
    stored, secret = new_key("only", scopes=[Scope.READ])
    with_rows(tmp_path, lambda rows: rows.add_key(stored))
    origin = {"Origin": "https://app.example"}
    with client_of(settings_in(tmp_path, cors_origins=("https://app.example",))) as client:
        preflight = {
            **origin,
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "authorization, x-api-key",
        }
        answer = client.options("/v1/collections", headers=preflight)
        assert answer.status_code == 200
        assert "x-api-key" in answer.headers["access-control-allow-headers"]
        refused = client.get("/v1/collections", headers=origin)
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://app.example"
        assert client.get("/v1/collections", headers={**origin, **bearer(secret)}).status_code == 200


# What they may do --------------------------------------------------------------------------------

CALLS: dict[tuple[str, str], tuple[Any, set[Scope]]] = {
    ("POST", f"/v1/collections/demo{SEARCH}"): (QUERY, {Scope.READ}),
    ("GET", "/v1/collections/demo/documents/bridge"): (None, {Scope.READ}),
    ("POST", "/v1/tokenize"): ({"texts": ["a"]}, {Scope.READ}),
    ("PUT", "/v1/collections/demo/documents/new"): ({"text": "New."}, {Scope.WRITE}),
    ("DELETE", "/v1/collections/demo/documents/new"): (None, {Scope.WRITE}),
    ("GET", "/v1/jobs"): (None, {Scope.READ, Scope.WRITE}),
    ("GET", "/v1/models"): (None, {Scope.READ, Scope.WRITE}),
    ("PUT", "/v1/collections/demo"): (None, set()),
    ("PUT", "/v1/collections/demo/search-settings"): ({}, set()),
    ("POST", "/v1/collections/demo/reindex"): ({}, set()),
    ("PUT", "/v1/aliases/passing"): ({"collection": "demo"}, set()),
    ("GET", "/v1/aliases/passing"): (None, {Scope.READ, Scope.WRITE}),
    ("GET", "/v1/aliases"): (None, {Scope.READ, Scope.WRITE}),
}
"""Body, and the scopes that suffice beside admin."""


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE, Scope.METRICS])
@pytest.mark.parametrize("call", CALLS)
def test_a_scope_allows_its_calls_alone(
    client: TestClient, new_header: NewKey, call: tuple[str, str], scope: Scope
) -> None:
    body, scopes = CALLS[call]
    answer = client.request(*call, json=body, headers=new_header(scope))
    if scope in scopes:
        assert answer.status_code < 300, answer.text
    else:
        problem = assert_problem(answer, 403, "forbidden")
        assert "admin" in problem["detail"]


def test_an_admin_may_do_everything(client: TestClient, new_header: NewKey) -> None:
    headers = new_header(Scope.ADMIN)
    for (method, path), (body, _) in CALLS.items():
        assert status(client, method, path, headers, body) < 300


def test_a_restricted_key_reaches_its_collections_alone(client: TestClient, new_header: NewKey) -> None:
    headers = new_header(Scope.ADMIN, collections=["other", "mine"])
    assert status(client, "POST", f"/v1/collections/other{SEARCH}", headers, QUERY) == 200
    assert status(client, "PUT", "/v1/collections/mine", headers) == 201
    for name in ("demo", "missing", "%64emo"):
        answer = client.post(f"/v1/collections/{name}{SEARCH}", json=QUERY, headers=headers)
        assert_problem(answer, 403, "forbidden")
    listed = client.get("/v1/collections", headers=headers).json()["collections"]
    assert [each["name"] for each in listed] == ["mine", "other"]
    assert status(client, "DELETE", "/v1/collections/mine", headers) == 204


def test_a_restricted_key_sees_no_job_of_other_collections(client: TestClient, new_header: NewKey) -> None:
    headers = new_header(Scope.ADMIN, collections=["other"])
    job = client.get("/v1/jobs", headers=new_header(Scope.READ)).json()["jobs"][0]
    assert job["collection"] == "demo"
    assert client.get("/v1/jobs", headers=headers).json()["jobs"] == []
    for method, path in (("GET", ""), ("GET", "/outcomes"), ("GET", "/events"), ("DELETE", "")):
        answer = client.request(method, f"/v1/jobs/{job['id']}{path}", headers=headers)
        assert_problem(answer, 404, "job-not-found")
    documents = {"documents": [{"id": "a", "text": "x"}]}
    own = client.post("/v1/collections/other/documents", json=documents, headers=headers).json()
    assert client.get(f"/v1/jobs/{own['id']}", headers=headers).json()["collection"] == "other"


def test_a_restricted_key_reaches_its_collection_through_any_alias(
    client: TestClient, new_header: NewKey, home: Path
) -> None:
    headers = new_header(Scope.READ, collections=["demo"])
    with_rows(home, lambda rows: rows.put_alias("wanders", "demo"))
    search = f"/v1/collections/wanders{SEARCH}"
    assert len(client.post(search, json=QUERY, headers=headers).json()["hits"]) == 3
    with_rows(home, lambda rows: rows.put_alias("wanders", "other"))
    assert_problem(client.post(search, json=QUERY, headers=headers), 403, "forbidden")


def test_a_key_restricted_to_an_alias_goes_where_the_alias_leads(
    client: TestClient, new_header: NewKey, home: Path
) -> None:
    headers = new_header(Scope.ADMIN, collections=["leads"])
    path = f"/v1/collections/leads{SEARCH}"
    assert status(client, "POST", path, headers, QUERY) == 404
    for reached, unreached in (("demo", "other"), ("other", "demo")):
        with_rows(home, partial(SqliteRows.put_alias, name="leads", collection=reached))
        for name in ("leads", reached):
            assert status(client, "POST", f"/v1/collections/{name}{SEARCH}", headers, QUERY) == 200
        assert status(client, "POST", f"/v1/collections/{unreached}{SEARCH}", headers, QUERY) == 403
        listed = client.get("/v1/collections", headers=headers).json()["collections"]
        assert [each["name"] for each in listed] == [reached]
        jobs = client.get("/v1/jobs", headers=headers).json()["jobs"]
        assert {job["collection"] for job in jobs} <= {reached}


def test_what_a_key_reaches_through_an_alias_stays_the_same_within_a_request(
    client: TestClient, new_header: NewKey, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alias is led elsewhere after the key was looked at and before the endpoint runs."""
    headers = new_header(Scope.READ, collections=["demo"])
    with_rows(home, lambda rows: rows.put_alias("hurried", "demo"))
    collection = SqliteRows.collection

    def led_elsewhere_first(rows: SqliteRows, name: str) -> Any:
        rows.put_alias("hurried", "other")
        return collection(rows, name)

    monkeypatch.setattr(SqliteRows, "collection", led_elsewhere_first)
    shown = client.get("/v1/collections/hurried", headers=headers)
    assert shown.json()["name"] == "demo"


def test_a_restricted_key_sees_the_aliases_of_its_collections_and_changes_none(
    client: TestClient, new_header: NewKey, home: Path
) -> None:
    headers = new_header(Scope.ADMIN, collections=["demo"])
    with_rows(home, lambda rows: [rows.put_alias(to[0], to) for to in ("demo", "other")])
    listed = client.get("/v1/aliases", headers=headers).json()["aliases"]
    assert {each["collection"] for each in listed} == {"demo"}
    assert status(client, "GET", "/v1/aliases/d", headers) == 200
    assert_problem(client.get("/v1/aliases/o", headers=headers), 404, "alias-not-found")
    for method, body in (("PUT", {"collection": "demo"}), ("DELETE", None)):
        assert status(client, method, "/v1/aliases/d", headers, body) == 403


def test_a_restricted_admin_names_no_standby_beyond_its_collections(
    client: TestClient, new_header: NewKey
) -> None:
    headers = new_header(Scope.ADMIN, collections=["mine", "mine-too"])
    for path in ("/v1/collections/mine", "/v1/collections/demo"):
        client.put(path, headers=headers)
    reindex = "/v1/collections/mine/reindex"
    assert status(client, "POST", reindex, headers, {"standby": "yours"}) == 403
    assert status(client, "POST", "/v1/collections/demo/reindex", headers, {}) == 403
    assert status(client, "POST", reindex, headers, {"standby": "mine-too"}) == 202
    assert status(client, "DELETE", "/v1/collections/mine", headers) == 204


# Nothing is forgotten ----------------------------------------------------------------------------


def operations() -> dict[str, str]:
    """Path by operation id, of every route but the pages of the description."""
    document = create_app(Settings()).openapi()
    return {
        operation["operationId"]: path
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }


def test_every_operation_says_which_scope_it_needs() -> None:
    assert set(operations()) == set(SCOPES) | OPEN


def test_operations_for_restricted_keys_exist_and_name_no_collection() -> None:
    for operation in WITHOUT_COLLECTION:
        assert "{collection}" not in operations()[operation]


def routes() -> Iterator[tuple[str, Any]]:
    found: list[Any] = list(create_app(Settings()).router.routes)
    for route in found:
        router = getattr(route, "original_router", None)
        yield from ((each.path, each) for each in (router.routes if router is not None else [route]))


def test_every_route_but_the_description_asks_for_keys() -> None:
    assert len(dict(routes())) > 15
    unasked = {path for path, route in routes() if not isinstance(route, StrictRoute)}
    assert unasked == {"/docs", "/redoc", "/docs-assets/{name}", "/openapi.json"}
