"""/v1/collections"""

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem


def test_creating_twice_with_the_same_settings_is_201_then_200(client: TestClient) -> None:
    body = {"splitter": {"max_tokens": 64, "overlap_tokens": 8}}
    first = client.put("/v1/collections/notes", json=body)
    second = client.put("/v1/collections/notes", json=body)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["splitter"] == {"max_tokens": 64, "overlap_tokens": 8, "version": 1}
    assert first.json() == second.json()


def test_creating_with_other_settings_is_a_conflict(client: TestClient) -> None:
    answer = client.put("/v1/collections/demo", json={"splitter": {"max_tokens": 64}})
    assert_problem(answer, 409, "collection-exists")


def test_a_body_is_optional_when_creating(client: TestClient) -> None:
    assert client.put("/v1/collections/notes").json()["splitter"]["max_tokens"] == 256


def test_a_collection_shows_its_model_statistics_and_index(client: TestClient) -> None:
    shown = client.get("/v1/collections/demo").json()
    assert (shown["name"], shown["model"], shown["fingerprint"]) == ("demo", "word-hash", "word-hash-1")
    assert shown["stats"]["n_documents"] == 3
    assert shown["stats"]["n_passages"] == 3
    assert set(shown["index"]) == {"passages", "documents"}
    assert shown["index"]["passages"]["n_base"] + shown["index"]["passages"]["n_tail"] == 3


def test_collections_are_listed_by_name(client: TestClient) -> None:
    client.put("/v1/collections/zebra")
    client.put("/v1/collections/ant")
    listed = client.get("/v1/collections").json()["collections"]
    assert [each["name"] for each in listed] == ["ant", "demo", "zebra"]


def test_a_deleted_collection_is_gone_and_its_name_is_free(client: TestClient) -> None:
    assert client.delete("/v1/collections/demo").status_code == 204
    assert_problem(client.get("/v1/collections/demo"), 404, "collection-not-found")
    assert_problem(client.delete("/v1/collections/demo"), 404, "collection-not-found")
    assert client.put("/v1/collections/demo", json={"splitter": {"max_tokens": 64}}).status_code == 201


@pytest.mark.parametrize(
    "name", ["Demo", "-a", "a" * 64, "a b", "a%2Fb", "%F0%9F%98%80", "demo%0A", "a%252Fb"]
)
def test_a_name_outside_the_pattern_is_refused_and_the_pattern_stated(client: TestClient, name: str) -> None:
    problem = assert_problem(client.put(f"/v1/collections/{name}"), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["path", "collection"]
    assert "[a-z0-9][a-z0-9_-]{0,62}" in problem["errors"][0]["message"]


def test_an_index_setting_is_kept_and_shown(client: TestClient) -> None:
    body = {"index_settings": {"exact_limit": 0}}
    assert client.put("/v1/collections/notes", json=body).json()["index_settings"] == {"exact_limit": 0}
    assert client.get("/v1/collections/demo").json()["index_settings"] == {"exact_limit": None}
    assert_problem(client.put("/v1/collections/notes"), 409, "collection-exists")


@pytest.mark.parametrize("exact_limit", [-1, 10**9 + 1, "0", 1.5, True])
def test_an_index_setting_outside_its_limits_is_refused(client: TestClient, exact_limit: object) -> None:
    body = {"index_settings": {"exact_limit": exact_limit}}
    problem = assert_problem(client.put("/v1/collections/notes", json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["body", "index_settings", "exact_limit"]


@pytest.mark.parametrize(
    ("splitter", "field"),
    [
        ({"max_tokens": 31}, "max_tokens"),
        ({"max_tokens": 8193}, "max_tokens"),
        ({"max_tokens": "64"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"overlap_tokens": -1}, "overlap_tokens"),
        ({"version": 2}, "version"),
    ],
)
def test_splitter_settings_outside_their_limits_are_refused(
    client: TestClient, splitter: dict[str, object], field: str
) -> None:
    problem = assert_problem(
        client.put("/v1/collections/notes", json={"splitter": splitter}), 422, "invalid-request"
    )
    assert problem["errors"][0]["location"] == ["body", "splitter", field]


def test_an_overlap_of_more_than_half_a_passage_is_refused(client: TestClient) -> None:
    body = {"splitter": {"max_tokens": 64, "overlap_tokens": 33}}
    problem = assert_problem(client.put("/v1/collections/notes", json=body), 422, "invalid-request")
    assert "at most half of max_tokens, here 32" in problem["detail"]


SEARCH_SETTINGS = "/v1/collections/demo/search-settings"
DEFAULTS = {"fusion": {"method": "convex", "dense_weight": 0.8, "depth": 200}, "candidates": None}


def test_search_settings_are_replaced_and_shown(client: TestClient) -> None:
    assert client.get("/v1/collections/demo").json()["search"] == DEFAULTS
    changed = client.put(SEARCH_SETTINGS, json={"fusion": {"dense_weight": 0.5}, "candidates": 30}).json()
    expected = {
        **DEFAULTS,
        "fusion": {"method": "convex", "dense_weight": 0.5, "depth": 200},
        "candidates": 30,
    }
    assert changed["search"] == client.get("/v1/collections/demo").json()["search"] == expected
    assert client.put(SEARCH_SETTINGS, json={}).json()["search"] == DEFAULTS


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({"fusion": {"dense_weight": 1.5}}, ["fusion", "dense_weight"]),
        ({"fusion": {"depth": 9}}, ["fusion", "depth"]),
        ({"fusion": {"method": "sum"}}, ["fusion", "method"]),
        ({"candidates": 0}, ["candidates"]),
        ({"splitter": {}}, ["splitter"]),
    ],
)
def test_search_settings_outside_their_limits_are_refused(
    client: TestClient, body: dict[str, object], location: list[str]
) -> None:
    problem = assert_problem(client.put(SEARCH_SETTINGS, json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["body", *location]


def test_search_settings_of_an_unknown_collection_are_404(client: TestClient) -> None:
    answer = client.put("/v1/collections/other/search-settings", json={})
    assert_problem(answer, 404, "collection-not-found")


def test_a_search_takes_the_settings_of_its_collection_where_it_says_nothing(client: TestClient) -> None:
    path = "/v1/collections/demo/search/asymmetric"

    def scores(**fusion: object) -> list[float]:
        body = {"query": "river valley", "fusion": fusion} if fusion else {"query": "river valley"}
        return [hit["fused"] for hit in client.post(path, json=body).json()["hits"]]

    before, words = scores(), scores(dense_weight=0.1)
    client.put(SEARCH_SETTINGS, json={"fusion": {"dense_weight": 0.1}})
    assert scores() == scores(method="convex") == words != before
    assert scores(dense_weight=0.8) == before
