"""Cursors of both searches."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem, client_of, fill, settings_in, worker_of
from tests.reading_substitutes import overlap_models

ASYMMETRIC = "/v1/collections/demo/search/asymmetric"
SYMMETRIC = "/v1/collections/demo/search/symmetric"
QUERIES: dict[str, dict[str, Any]] = {
    ASYMMETRIC: {"query": "river valley"},
    SYMMETRIC: {"text": "A river runs."},
}


@pytest.mark.parametrize("path", QUERIES)
def test_pages_follow_each_other_until_the_cursor_is_null(client: TestClient, path: str) -> None:
    whole = client.post(path, json=QUERIES[path]).json()
    assert whole["next_cursor"] is None
    shown: list[Any] = []
    cursor: str | None = None
    for _ in range(3):
        page = client.post(path, json={**QUERIES[path], "top_k": 1, "cursor": cursor}).json()
        assert page["total"] == {"n_documents": 3, "is_exact": True}
        assert page["is_exact"] is True
        shown += page["hits"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert shown == whole["hits"]


def test_size_of_the_page_and_what_is_shown_may_change_from_page_to_page(client: TestClient) -> None:
    body = {"query": "river valley", "top_k": 1}
    cursor = client.post(ASYMMETRIC, json=body).json()["next_cursor"]
    body |= {"top_k": 5, "passages_per_hit": 1, "facets": ["year"], "cursor": cursor}
    assert len(client.post(ASYMMETRIC, json=body).json()["hits"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"query": "river"},
        {"mode": "dense"},
        {"fusion": {"method": "rrf"}},
        {"filter": {"field": "x", "eq": 1}},
    ],
)
def test_a_cursor_of_another_search_is_refused(client: TestClient, change: dict[str, Any]) -> None:
    body: dict[str, Any] = {"query": "river valley", "top_k": 1}
    cursor = client.post(ASYMMETRIC, json=body).json()["next_cursor"]
    problem = assert_problem(
        client.post(ASYMMETRIC, json={**body, **change, "cursor": cursor}), 422, "bad-cursor"
    )
    assert problem["errors"][0]["location"] == ["body", "cursor"]
    assert "passages_per_hit" in problem["detail"]


@pytest.mark.parametrize("cursor", ["", "x", "\u00e4", "W10", "WyJ4IiwgMV0"])
def test_what_is_no_cursor_is_refused(client: TestClient, cursor: str) -> None:
    for path, query in QUERIES.items():
        assert_problem(client.post(path, json={**query, "cursor": cursor}), 422, "bad-cursor")


def test_a_cursor_of_another_collection_is_refused(client: TestClient) -> None:
    client.put("/v1/collections/other")
    body: dict[str, Any] = {"query": "river valley", "top_k": 1}
    body["cursor"] = client.post(ASYMMETRIC, json=body).json()["next_cursor"]
    answer = client.post("/v1/collections/other/search/asymmetric", json=body)
    assert_problem(answer, 422, "bad-cursor")


def test_a_change_among_the_pages_before_says_to_start_again(client: TestClient) -> None:
    body: dict[str, Any] = {"query": "river valley", "top_k": 2}
    body["cursor"] = client.post(ASYMMETRIC, json=body).json()["next_cursor"]
    client.put("/v1/collections/demo/documents/best", json={"text": "River valley."})
    problem = assert_problem(client.post(ASYMMETRIC, json=body), 409, "ranking-changed")
    assert "search again without a cursor" in problem["detail"]


def test_pages_of_a_reranked_search_are_one_ranking(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with worker_of(settings), client_of(settings, reading=overlap_models()) as client:
        fill(client)
        body: dict[str, Any] = {"query": "river valley", "candidates": 2}
        whole = client.post(ASYMMETRIC, json=body).json()
        assert whole["reranking"]["n_reranked"] == 2
        shown: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = client.post(ASYMMETRIC, json={**body, "top_k": 1, "cursor": cursor}).json()
            shown += [hit["document_id"] for hit in page["hits"]]
            cursor = page["next_cursor"]
    assert cursor is None
    assert shown == [hit["document_id"] for hit in whole["hits"]]
