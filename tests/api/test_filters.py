"""Filters and facets, in searches and listings."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem

PATH = "/v1/collections/demo/documents"
ASYMMETRIC = "/v1/collections/demo/search/asymmetric"
SYMMETRIC = "/v1/collections/demo/search/symmetric"
SEARCHES = [(ASYMMETRIC, {"query": "river"}), (SYMMETRIC, {"text": "A river."})]

YEAR = {"field": "year", "gte": 1990}


def ids(body: dict[str, Any]) -> list[str]:
    return sorted(hit["document_id"] for hit in body["hits"])


@pytest.mark.parametrize(("path", "body"), SEARCHES)
def test_a_search_returns_documents_that_satisfy_the_filter(
    client: TestClient, path: str, body: dict[str, Any]
) -> None:
    for written, expected in (
        (YEAR, ["a/b"]),
        ({"not": YEAR}, ["bridge", "castle"]),
        ({"field": "tags", "eq": 2.5}, ["bridge"]),
        ({"field": "tags", "eq": "2.5"}, []),
        (None, ["a/b", "bridge", "castle"]),
    ):
        answer = client.post(path, json={**body, "filter": written}).json()
        assert ids(answer) == expected


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_every_mode_searches_under_the_filter(client: TestClient, mode: str) -> None:
    answer = client.post(ASYMMETRIC, json={"query": "river", "mode": mode, "filter": {"not": YEAR}}).json()
    assert answer["hits"][0]["document_id"] == "bridge"
    assert "a/b" not in ids(answer)
    assert "filter" in answer["timings_ms"]


@pytest.mark.parametrize(("path", "body"), SEARCHES)
def test_facets_count_the_filtered_documents_and_not_the_hits(
    client: TestClient, path: str, body: dict[str, Any]
) -> None:
    asked = {**body, "top_k": 1, "facets": ["year", "tags"], "facet_limit": 2}
    answer = client.post(path, json=asked).json()
    assert answer["facets"] == {
        "year": {
            "values": [{"value": 1999, "n_documents": 1}],
            "n_other_values": 0,
            "n_other": 0,
            "n_missing": 2,
        },
        "tags": {
            "values": [{"value": True, "n_documents": 1}, {"value": 1, "n_documents": 1}],
            "n_other_values": 2,
            "n_other": 2,
            "n_missing": 2,
        },
    }
    filtered = client.post(path, json={**asked, "filter": YEAR}).json()
    assert filtered["facets"]["tags"]["n_missing"] == 1
    assert client.post(path, json=body).json()["facets"] == {}


@pytest.mark.parametrize(
    ("written", "location", "message"),
    [
        ({}, [], "a filter has exactly one of `and`, `or`, `not`"),
        ({"field": "a", "equals": 1}, [], "allowed are eq, in, gt, gte, lt, lte, exists"),
        ({"and": [YEAR, {"field": "a", "lt": "soon"}]}, ["and", 1, "lt"], "'soon' is not a date"),
    ],
)
def test_a_wrong_filter_is_422_with_its_place_and_what_is_allowed(
    client: TestClient, written: object, location: list[Any], message: str
) -> None:
    for path, body in SEARCHES:
        problem = assert_problem(client.post(path, json={**body, "filter": written}), 422, "bad-filter")
        assert problem["errors"][0]["location"] == ["body", "filter", *location]
        assert message in problem["detail"]


def test_a_filter_that_is_no_object_is_422(client: TestClient) -> None:
    answer = client.post(ASYMMETRIC, json={"query": "river", "filter": [YEAR]})
    assert_problem(answer, 422, "invalid-request")


def test_a_listing_under_a_filter_is_paged(client: TestClient) -> None:
    written = json.dumps({"not": {"field": "year", "exists": True}})
    first = client.get(PATH, params={"filter": written, "limit": 1}).json()
    assert [each["id"] for each in first["documents"]] == ["bridge"]
    second = client.get(PATH, params={"filter": written, "limit": 1, "cursor": first["next_cursor"]}).json()
    assert [each["id"] for each in second["documents"]] == ["castle"]
    assert second["next_cursor"] is None


def test_a_cursor_belongs_to_the_filter_of_its_listing(client: TestClient) -> None:
    written = json.dumps({"not": YEAR})
    cursor = client.get(PATH, params={"filter": written, "limit": 1}).json()["next_cursor"]
    assert_problem(client.get(PATH, params={"cursor": cursor}), 422, "bad-cursor")


@pytest.mark.parametrize(
    ("text", "location", "message"),
    [
        ("", [], "is not JSON"),
        ("year >= 1990", [], "is not JSON"),
        ("[" * 1000, [], "is not JSON"),
        ("null", [], "is null; a filter is an object"),
        ('{"or": [{"field": "a"}]}', ["or", 0], "has no operator"),
        ('{"field": "a", "eq": NaN}', ["eq"], "finite numbers are allowed"),
    ],
)
def test_a_wrong_filter_of_a_listing_is_422_with_its_place(
    client: TestClient, text: str, location: list[Any], message: str
) -> None:
    problem = assert_problem(client.get(PATH, params={"filter": text}), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["query", "filter", *location]
    assert message in problem["detail"]
