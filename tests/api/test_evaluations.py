"""/v1/collections/{collection}/evaluations"""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem
from tests.indexer.stand_ins import wait_until

PATH = "/v1/collections/demo/evaluations"
FILES = "/v1/collections/demo/evaluation-files"
QUERIES: list[dict[str, Any]] = [
    {"id": "1", "text": "river valley", "judgements": {"a/b": 2, "castle": 0}},
    {"id": "2", "text": "castle mountain", "judgements": {"castle": 1}},
]


def finished(client: TestClient, url: str) -> dict[str, Any]:
    wait_until(lambda: client.get(url).json()["state"] not in {"queued", "running"})
    shown: dict[str, Any] = client.get(url).json()
    return shown


def refused(client: TestClient, body: Any) -> dict[str, Any]:
    return assert_problem(client.post(PATH, json=body), 422, "invalid-request")


def test_an_evaluation_measures_every_configuration(client: TestClient) -> None:
    accepted = client.post(PATH, json={"queries": QUERIES})
    assert accepted.status_code == 202
    shown = finished(client, accepted.headers["location"])
    assert (shown["state"], shown["n_queries"], shown["n_done"]) == ("succeeded", 2, 2)
    result = shown["result"]
    assert [each["name"] for each in result["configurations"]] == ["lexical", "dense", "hybrid"]
    for each in result["configurations"]:
        assert set(each["metrics"]) == {"nDCG@10", "MRR@10", "Recall@100", "MAP@100"}
        assert each["metrics"]["nDCG@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
        assert each["latency_ms"]["total"]["p95"] >= each["latency_ms"]["total"]["p50"] > 0
    assert len(result["differences"]) == 3 * 4
    assert result["ndcg_by_query"]["hybrid"] == {"1": 1.0, "2": 1.0}


def test_configurations_are_kept_as_they_were_when_asked(client: TestClient) -> None:
    body = {"queries": QUERIES, "configurations": [{"name": "mine", "fusion": {"dense_weight": 0.3}}]}
    location = client.post(PATH, json=body).headers["location"]
    client.put("/v1/collections/demo/search-settings", json={"fusion": {"method": "rrf"}})
    fusion = {"method": "convex", "dense_weight": 0.3, "depth": 200}
    assert client.get(location).json()["configurations"] == [
        {"name": "mine", "mode": "hybrid", "fusion": fusion, "rerank": False, "candidates": None}
    ]


def test_reranking_needs_a_model_that_reranks(client: TestClient) -> None:
    body = {"queries": QUERIES, "configurations": [{"name": "mine", "rerank": True}]}
    assert_problem(client.post(PATH, json=body), 409, "model-not-configured")


def test_queries_without_a_relevant_document_are_left_out_and_named(client: TestClient) -> None:
    without = {"id": "none", "text": "x", "judgements": {"castle": 0}}
    location = client.post(PATH, json={"queries": [*QUERIES, without]}).headers["location"]
    result = finished(client, location)["result"]
    assert "none" not in result["ndcg_by_query"]["dense"]
    assert any("none" in note for note in result["notes"])


def test_queries_and_judgements_may_be_files(client: TestClient) -> None:
    queries = "".join(json.dumps({"_id": q["id"], "text": q["text"]}) + "\n" for q in QUERIES)
    files = {
        "queries": ("queries.jsonl", queries + '{"_id": "unjudged", "text": "x"}\n'),
        "qrels": ("test.tsv", "query-id\tcorpus-id\tscore\n1\ta/b\t2\n2\tcastle\t1\n"),
    }
    chosen = json.dumps([{"name": "by words", "mode": "lexical"}])
    accepted = client.post(FILES, files=files, data={"configurations": chosen})
    assert accepted.status_code == 202, accepted.text
    shown = finished(client, accepted.headers["location"])
    assert shown["n_queries"] == 2
    assert shown["result"]["ndcg_by_query"] == {"by words": {"1": 1.0, "2": 1.0}}


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("queries", '{"_id": "1"}', "line 1 'text' is missing"),
        ("queries", '{"_id": "1", "text": "x"}\n[]', "line 2 is no JSON object"),
        ("queries", "{", "line 1 is no JSON"),
        ("qrels", "1\ta/b\t2\n1\ta/b", "line 2 has 2 columns"),
        ("qrels", "1\ta/b\t2\n1\tcastle\tmany", "line 2 the score 'many' is no whole number"),
        ("qrels", b"1\t\xff\t2", "line 1 is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(
    client: TestClient, part: str, content: str | bytes, message: str
) -> None:
    files = {
        "queries": ("q", '{"_id": "1", "text": "river"}'),
        "qrels": ("r", "1\ta/b\t2"),
        part: ("broken", content),
    }
    problem = assert_problem(client.post(FILES, files=files), 422, "bad-file")
    assert problem["detail"].startswith(f"{part}: {message}")


@pytest.mark.parametrize(
    ("files", "data", "message"),
    [
        ({"queries": ("q", "{}")}, {}, "qrels: is missing"),
        ({"queries": ("q", "{}"), "other": ("x", "")}, {}, "other: is not a known part"),
        ({"queries": ("q", "{}")}, {"qrels": "1"}, "qrels: has to be a file"),
    ],
)
def test_parts_are_as_they_should_be(
    client: TestClient, files: dict[str, Any], data: dict[str, str], message: str
) -> None:
    answer = client.post(FILES, files=files, data=data)
    assert assert_problem(answer, 422, "invalid-request")["detail"].startswith(message)


def test_what_means_nothing_is_refused(client: TestClient) -> None:
    one = QUERIES[0]
    assert "is there twice" in refused(client, {"queries": [one, one]})["detail"]
    assert "is blank" in refused(client, {"queries": [{**one, "text": " "}]})["detail"]
    pointless = {"queries": [{**one, "judgements": {"a/b": 0}}]}
    assert "no query has a relevant document" in refused(client, pointless)["detail"]
    twice = {"queries": [one], "configurations": [{"name": "a"}, {"name": "a", "mode": "dense"}]}
    assert "'a' is there twice among the configurations" in refused(client, twice)["detail"]
    many = [{"name": f"n{i}"} for i in range(7)]
    refused(client, {"queries": [one], "configurations": many})


def test_evaluations_are_listed_newest_first_and_of_their_collection(client: TestClient) -> None:
    client.put("/v1/collections/other")
    first, second = (client.post(PATH, json={"queries": QUERIES}).json()["id"] for _ in range(2))
    page = client.get(PATH, params={"limit": 1}).json()
    assert [each["id"] for each in page["evaluations"]] == [second]
    rest = client.get(PATH, params={"cursor": page["next_cursor"]}).json()
    assert [each["id"] for each in rest["evaluations"]] == [first]
    assert client.get("/v1/collections/other/evaluations").json()["evaluations"] == []
    assert_problem(client.get(f"/v1/collections/other/evaluations/{first}"), 404, "job-not-found")


def test_a_job_that_is_no_evaluation_is_not_shown_as_one(client: TestClient) -> None:
    job = client.get("/v1/jobs").json()["jobs"][-1]
    assert job["kind"] != "evaluation"
    assert_problem(client.get(f"{PATH}/{job['id']}"), 404, "job-not-found")


def test_a_deleted_evaluation_is_gone(idle_client: TestClient) -> None:
    location = idle_client.post(PATH, json={"queries": QUERIES}).headers["location"]
    assert idle_client.get(location).json()["state"] == "queued"
    assert idle_client.delete(location).status_code == 204
    assert_problem(idle_client.get(location), 404, "job-not-found")


def test_a_cancelled_evaluation_stays_without_a_result(idle_client: TestClient) -> None:
    evaluation = idle_client.post(PATH, json={"queries": QUERIES}).json()
    assert idle_client.delete(f"/v1/jobs/{evaluation['id']}").json()["state"] == "cancelled"
    shown = idle_client.get(f"{PATH}/{evaluation['id']}").json()
    assert (shown["state"], shown["result"]) == ("cancelled", None)


def test_too_many_waiting_evaluations_are_refused(idle_client: TestClient) -> None:
    for _ in range(10):
        assert idle_client.post(PATH, json={"queries": QUERIES}).status_code == 202
    answer = idle_client.post(PATH, json={"queries": QUERIES})
    assert_problem(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "60"
