"""/v1/collections/{collection}/reindex and /rollback"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem

DEMO, STANDBY = "/v1/collections/demo", "/v1/collections/demo-standby"
SHORTER = {"splitter": {"max_tokens": 64, "overlap_tokens": 8}}
LONG = " ".join(f"Sentence {i} of a long document." for i in range(40))


def finished(client: TestClient, answer: Any) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    until = time.monotonic() + 30
    while (job := client.get(answer.headers["location"]).json())["finished_at"] is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    found: dict[str, Any] = job
    return found


def reindex(client: TestClient, **body: object) -> None:
    assert finished(client, client.post(f"{DEMO}/reindex", json=body))["state"] == "succeeded"


def n_passages(client: TestClient, path: str) -> int:
    stats: dict[str, int] = client.get(path).json()["stats"]
    return stats["n_passages"]


@contextmanager
def searching(client: TestClient) -> Iterator[list[object]]:
    """Whatever was not a full answer, of searches that go on all the time."""
    faults: list[object] = []
    end = threading.Event()

    def search() -> None:
        while not end.is_set():
            answer = client.post(f"{DEMO}/search/asymmetric", json={"query": "river bridge castle"})
            if answer.status_code != 200 or len(answer.json()["hits"]) != 4:
                faults.append(answer.text)

    thread = threading.Thread(target=search)
    thread.start()
    try:
        yield faults
    finally:
        end.set()
        thread.join()


def test_a_collection_is_split_anew_and_rolled_back_while_searches_go_on(client: TestClient) -> None:
    client.put(f"{DEMO}/documents/long", json={"text": LONG}).raise_for_status()
    before = n_passages(client, DEMO)
    documents = client.get(f"{DEMO}/documents").json()["documents"]
    with searching(client) as faults:
        job = finished(client, client.post(f"{DEMO}/reindex", json=SHORTER))
        assert (job["kind"], job["state"], job["n_inputs"], job["n_done"]) == ("reindex", "succeeded", 4, 4)
        assert n_passages(client, DEMO) > before == n_passages(client, STANDBY)
        assert client.get(DEMO).json()["splitter"]["max_tokens"] == 64
        job = finished(client, client.post(f"{DEMO}/rollback"))
        assert job["state"] == "succeeded"
    assert faults == []
    assert n_passages(client, DEMO) == before
    again = client.get(f"{DEMO}/documents").json()["documents"]
    kept = ("id", "title", "metadata", "created_at", "updated_at")
    assert [[each[name] for name in kept] for each in again] == [
        [each[name] for name in kept] for each in documents
    ]


def test_what_was_written_after_the_switch_survives_rolling_back(client: TestClient) -> None:
    reindex(client, **SHORTER)
    client.put(f"{DEMO}/documents/new", json={"text": "Written after the switch."})
    client.put(f"{DEMO}/documents/castle", json={"text": "The castle has a new text."})
    client.delete(f"{DEMO}/documents/bridge")
    job = finished(client, client.post(f"{DEMO}/rollback"))
    assert job["n_inputs"] == 3
    assert client.get(DEMO).json()["splitter"]["max_tokens"] == 256
    listed = client.get(f"{DEMO}/documents").json()["documents"]
    assert [each["id"] for each in listed] == ["a/b", "castle", "new"]
    assert client.get(f"{DEMO}/documents/castle").json()["text"] == "The castle has a new text."
    found = client.post(f"{DEMO}/search/asymmetric", json={"query": "written after the switch"}).json()
    assert found["hits"][0]["document_id"] == "new"


def test_the_former_form_can_be_searched_and_deleted_and_takes_no_documents(client: TestClient) -> None:
    reindex(client, **SHORTER)
    shown = client.get(STANDBY).json()
    assert (shown["standby_of"], shown["is_building"]) == ("demo", False)
    assert client.get(DEMO).json()["standby_of"] is None
    found = client.post(f"{STANDBY}/search/asymmetric", json={"query": "river"}).json()
    assert len(found["hits"]) == 3
    refusals = [
        client.put(f"{STANDBY}/documents/x", json={"text": "x"}),
        client.post(f"{STANDBY}/documents", json={"documents": [{"id": "x", "text": "x"}]}),
        client.delete(f"{STANDBY}/documents/castle"),
        client.post(f"{STANDBY}/files", files={"files": ("x.txt", b"x")}),
        client.put(f"{STANDBY}/search-settings", json={}),
        client.post(f"{STANDBY}/reindex"),
        client.post(f"{STANDBY}/rollback"),
        client.put("/v1/aliases/current", json={"collection": "demo-standby"}),
    ]
    for answer in refusals:
        assert "'demo'" in assert_problem(answer, 409, "collection-in-use")["detail"]
    assert client.delete(STANDBY).status_code == 204
    assert_problem(client.post(f"{DEMO}/rollback"), 409, "standby-missing")
    assert len(client.get(f"{DEMO}/documents").json()["documents"]) == 3


def test_what_belongs_to_the_name_stays_with_it(client: TestClient) -> None:
    client.put("/v1/aliases/current", json={"collection": "demo"})
    judged = {"queries": [{"id": "1", "text": "river", "judgements": {"bridge": 1}}]}
    evaluation = client.post(f"{DEMO}/evaluations", json=judged).json()
    client.put(f"{DEMO}/search-settings", json={"candidates": 7})
    n_jobs = len(client.get("/v1/jobs").json()["jobs"])
    reindex(client, **SHORTER)
    assert client.get("/v1/collections/current").json() == client.get(DEMO).json()
    assert client.get(DEMO).json()["search"]["candidates"] == 7
    assert client.get(f"{DEMO}/evaluations/{evaluation['id']}").status_code == 200
    jobs = client.get("/v1/jobs").json()["jobs"]
    assert [job["collection"] for job in jobs] == ["demo"] * (n_jobs + 1)


def test_what_is_not_said_stays_as_it_is(client: TestClient) -> None:
    reindex(client, splitter={"max_tokens": 100}, index_settings={"exact_limit": 0}, standby="old-demo")
    shown = client.get(DEMO).json()
    assert shown["splitter"] == {"max_tokens": 100, "overlap_tokens": 32, "version": 1}
    assert shown["index_settings"] == {"exact_limit": 0}
    client.delete("/v1/collections/old-demo")
    reindex(client)
    assert client.get(DEMO).json()["splitter"] == shown["splitter"]
    assert client.get(DEMO).json()["index_settings"] == shown["index_settings"]


@pytest.mark.parametrize(
    ("body", "location"),
    [
        ({"splitter": {"max_tokens": 31}}, ["body", "splitter", "max_tokens"]),
        ({"splitter": {"max_tokens": "64"}}, ["body", "splitter", "max_tokens"]),
        ({"splitter": {"overlap_tokens": -1}}, ["body", "splitter", "overlap_tokens"]),
        ({"splitter": {"max_tokens": 40}}, ["body", "splitter", "overlap_tokens"]),
        ({"splitter": {"overlap_tokens": 200}}, ["body", "splitter", "overlap_tokens"]),
        ({"splitter": {"version": 2}}, ["body", "splitter", "version"]),
        ({"splitter": None}, ["body", "splitter"]),
        ({"index_settings": {"exact_limit": -1}}, ["body", "index_settings", "exact_limit"]),
        ({"standby": "Not Allowed"}, ["body", "standby"]),
        ({"standby": ""}, ["body", "standby"]),
        ({"model": 7}, ["body", "model"]),
        ({"model": "x" * 501}, ["body", "model"]),
        ({"encoder": "x"}, ["body", "encoder"]),
    ],
)
def test_what_is_not_allowed_is_refused(
    client: TestClient, body: dict[str, object], location: list[str]
) -> None:
    problem = assert_problem(client.post(f"{DEMO}/reindex", json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == location
    assert_problem(client.get(STANDBY), 404, "collection-not-found")


def test_a_name_too_long_for_a_standby_needs_another_one(client: TestClient) -> None:
    name = "x" * 60
    client.put(f"/v1/collections/{name}")
    problem = assert_problem(client.post(f"/v1/collections/{name}/reindex"), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["body", "standby"]
    answer = client.post(f"/v1/collections/{name}/reindex", json={"standby": "y"})
    assert finished(client, answer)["state"] == "succeeded"


def test_taken_names_are_refused(client: TestClient) -> None:
    client.put("/v1/aliases/current", json={"collection": "demo"})
    client.put("/v1/collections/notes")
    for taken in ("demo", "current", "notes"):
        answer = client.post(f"{DEMO}/reindex", json={"standby": taken})
        assert_problem(answer, 409, "name-taken")


def test_an_unknown_collection_is_404(client: TestClient) -> None:
    for action in ("reindex", "rollback"):
        answer = client.post(f"/v1/collections/nowhere/{action}")
        assert_problem(answer, 404, "collection-not-found")


def test_without_a_former_form_there_is_nothing_to_go_back_to(client: TestClient) -> None:
    assert_problem(client.post(f"{DEMO}/rollback"), 409, "standby-missing")


def test_one_reindex_at_a_time_and_a_cancelled_one_leaves_nothing(idle_client: TestClient) -> None:
    job = idle_client.post(f"{DEMO}/reindex").json()
    assert job["state"] == "queued"
    assert idle_client.get(STANDBY).json()["is_building"]
    assert_problem(idle_client.post(f"{DEMO}/reindex"), 409, "collection-in-use")
    assert_problem(idle_client.post(f"{DEMO}/rollback"), 409, "standby-missing")
    assert idle_client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert_problem(idle_client.get(STANDBY), 404, "collection-not-found")
    assert idle_client.post(f"{DEMO}/reindex").status_code == 202


def test_deleting_a_standby_cancels_its_job(idle_client: TestClient) -> None:
    job = idle_client.post(f"{DEMO}/reindex").json()
    assert idle_client.delete(STANDBY).status_code == 204
    assert idle_client.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert idle_client.get(DEMO).status_code == 200


def test_a_collection_is_deleted_with_its_standby(client: TestClient) -> None:
    reindex(client, **SHORTER)
    assert client.delete(DEMO).status_code == 204
    assert client.get("/v1/collections").json()["collections"] == []


def test_a_cursor_of_a_search_goes_on_after_the_switch_or_says_that_it_cannot(client: TestClient) -> None:
    search, body = f"{DEMO}/search/asymmetric", {"query": "river", "top_k": 1, "mode": "dense"}
    first = client.post(search, json=body).json()
    reindex(client)
    second = client.post(search, json={**body, "cursor": first["next_cursor"]}).json()
    assert second["hits"][0]["document_id"] != first["hits"][0]["document_id"]


def test_a_cursor_of_a_listing_belongs_to_one_form(client: TestClient) -> None:
    cursor = client.get(f"{DEMO}/documents?limit=1").json()["next_cursor"]
    reindex(client)
    assert_problem(client.get(f"{DEMO}/documents?cursor={cursor}"), 422, "bad-cursor")
