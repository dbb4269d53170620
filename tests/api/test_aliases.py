"""/v1/aliases, and aliases in the place of collections."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem

CURRENT = "/v1/aliases/current"


def point(client: TestClient, collection: str) -> None:
    assert client.put(CURRENT, json={"collection": collection}).status_code < 300


def test_an_alias_is_made_moved_shown_and_deleted(client: TestClient) -> None:
    client.put("/v1/collections/newer")
    made = client.put(CURRENT, json={"collection": "demo"})
    moved = client.put(CURRENT, json={"collection": "newer"})
    assert (made.status_code, moved.status_code) == (201, 200)
    assert (made.json()["collection"], moved.json()["collection"]) == ("demo", "newer")
    assert client.get(CURRENT).json() == moved.json()
    assert client.get("/v1/aliases").json() == {"aliases": [moved.json()]}
    assert client.delete(CURRENT).status_code == 204
    assert_problem(client.get(CURRENT), 404, "alias-not-found")
    assert_problem(client.delete(CURRENT), 404, "alias-not-found")


SEARCHES = [
    ("search/asymmetric", {"query": "river bridge"}),
    ("search/symmetric", {"document_id": "bridge"}),
]


@pytest.mark.parametrize(("path", "body"), SEARCHES)
def test_a_search_through_an_alias_is_one_of_its_collection(
    client: TestClient, path: str, body: dict[str, Any]
) -> None:
    point(client, "demo")
    by_name, by_alias = (
        client.post(f"/v1/collections/{name}/{path}", json=body).json() for name in ("demo", "current")
    )
    assert by_alias["hits"] == by_name["hits"] != []


def test_documents_are_written_read_and_deleted_through_an_alias(client: TestClient) -> None:
    point(client, "demo")
    written = client.put("/v1/collections/current/documents/new", json={"text": "A new note."})
    assert written.status_code == 201
    assert client.get("/v1/collections/demo/documents/new").json()["text"] == "A new note."
    listed = client.get("/v1/collections/current/documents").json()["documents"]
    assert [each["id"] for each in listed] == ["a/b", "bridge", "castle", "new"]
    assert client.delete("/v1/collections/current/documents/new").status_code == 204
    assert_problem(client.get("/v1/collections/demo/documents/new"), 404, "document-not-found")


def test_a_collection_shown_through_an_alias_has_its_own_name(client: TestClient) -> None:
    point(client, "demo")
    assert client.get("/v1/collections/current").json() == client.get("/v1/collections/demo").json()


def test_files_and_evaluations_go_through_an_alias(client: TestClient, tmp_path: Path) -> None:
    point(client, "demo")
    (tmp_path / "note.txt").write_text("A note in a file.")
    with (tmp_path / "note.txt").open("rb") as file:
        answer = client.post(
            "/v1/collections/current/files", files={"files": file}, headers={"Prefer": "wait=30"}
        )
    assert answer.json()["job"]["collection"] == "demo"
    judged = {"queries": [{"id": "1", "text": "river", "judgements": {"bridge": 1}}]}
    evaluation = client.post("/v1/collections/current/evaluations", json=judged).json()
    for name in ("current", "demo"):
        listed = client.get(f"/v1/collections/{name}/evaluations").json()["evaluations"]
        assert [each["id"] for each in listed] == [evaluation["id"]]
        shown = client.get(f"/v1/collections/{name}/evaluations/{evaluation['id']}")
        assert shown.status_code == 200


def test_a_moved_alias_serves_the_other_collection_with_the_next_request(client: TestClient) -> None:
    client.put("/v1/collections/newer")
    client.put("/v1/collections/newer/documents/only", json={"text": "The river in the newer one."})
    for collection, n_hits in (("demo", 3), ("newer", 1), ("demo", 3)):
        point(client, collection)
        found = client.post("/v1/collections/current/search/asymmetric", json={"query": "river"}).json()
        assert len(found["hits"]) == n_hits


def test_a_cursor_of_a_listing_does_not_go_on_in_another_collection(client: TestClient) -> None:
    client.put("/v1/collections/newer")
    point(client, "demo")
    cursor = client.get("/v1/collections/current/documents?limit=1").json()["next_cursor"]
    point(client, "newer")
    answer = client.get(f"/v1/collections/current/documents?cursor={cursor}")
    assert_problem(answer, 422, "bad-cursor")


def test_pages_of_a_search_do_not_go_on_in_another_collection(client: TestClient) -> None:
    client.put("/v1/collections/newer")
    client.put("/v1/collections/newer/documents/only", json={"text": "The river in the newer one."})
    point(client, "demo")
    search, body = "/v1/collections/current/search/asymmetric", {"query": "river", "top_k": 1}
    cursor = client.post(search, json=body).json()["next_cursor"]
    point(client, "newer")
    assert_problem(client.post(search, json={**body, "cursor": cursor}), 409, "ranking-changed")


@pytest.mark.parametrize("name", ["Current", "-a", "a" * 64, "a%2Fb", "a b"])
def test_a_name_outside_the_pattern_is_refused(client: TestClient, name: str) -> None:
    answer = client.put(f"/v1/aliases/{name}", json={"collection": "demo"})
    problem = assert_problem(answer, 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["path", "alias"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "collection"),
        ({"collection": None}, "collection"),
        ({"collection": 7}, "collection"),
        ({"collection": ["demo"]}, "collection"),
        ({"collection": "x" * 64}, "collection"),
        ({"collection": "demo", "weight": 1}, "weight"),
    ],
)
def test_a_body_outside_of_what_is_allowed_is_refused(
    client: TestClient, body: dict[str, object], field: str
) -> None:
    problem = assert_problem(client.put(CURRENT, json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["body", field]


def test_an_alias_of_nothing_is_404(client: TestClient) -> None:
    for collection in ("nowhere", "", "De mo"):
        answer = client.put(CURRENT, json={"collection": collection})
        assert_problem(answer, 404, "collection-not-found")


def test_an_alias_of_an_alias_is_refused_naming_the_collection(client: TestClient) -> None:
    point(client, "demo")
    answer = client.put("/v1/aliases/again", json={"collection": "current"})
    assert "'demo'" in assert_problem(answer, 404, "collection-not-found")["detail"]


def test_one_name_is_not_both(client: TestClient) -> None:
    point(client, "demo")
    answer = client.put("/v1/aliases/demo", json={"collection": "demo"})
    assert_problem(answer, 409, "name-taken")
    for body in ({}, {"splitter": {"max_tokens": 64}}):
        assert_problem(client.put("/v1/collections/current", json=body), 409, "name-taken")


def test_deleting_needs_the_collections_own_name_and_no_aliases(client: TestClient) -> None:
    point(client, "demo")
    assert_problem(client.delete("/v1/collections/current"), 409, "name-taken")
    problem = assert_problem(client.delete("/v1/collections/demo"), 409, "collection-in-use")
    assert "current" in problem["detail"]
    client.delete(CURRENT)
    assert client.delete("/v1/collections/demo").status_code == 204


def test_the_description_says_that_a_collection_under_an_alias_is_not_deleted(client: TestClient) -> None:
    described = client.get("/openapi.json").json()["paths"]["/v1/collections/{collection}"]["delete"]
    assert "409" in described["responses"]
