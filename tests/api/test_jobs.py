"""/v1/jobs"""

import json

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import DOCUMENTS, assert_problem

DOCUMENTS_PATH = "/v1/collections/demo/documents"


def submit(client: TestClient, **headers: str) -> str:
    answer = client.post(DOCUMENTS_PATH, json={"documents": DOCUMENTS}, headers=headers).json()
    return str(answer.get("id") or answer["job"]["id"])


def test_jobs_are_listed_newest_first_a_page_at_a_time(idle_client: TestClient) -> None:
    submitted = [submit(idle_client) for _ in range(5)]
    found: list[str] = []
    params: dict[str, str | int] = {"limit": 2}
    while True:
        page = idle_client.get("/v1/jobs", params=params).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert found == submitted[::-1]


def test_jobs_are_listed_by_state(idle_client: TestClient) -> None:
    kept, cancelled = submit(idle_client), submit(idle_client)
    idle_client.delete(f"/v1/jobs/{cancelled}")
    for state, expected in (("queued", kept), ("cancelled", cancelled)):
        (job,) = idle_client.get("/v1/jobs", params={"state": state}).json()["jobs"]
        assert job["id"] == expected


def test_an_unknown_state_is_refused_with_the_allowed_ones(idle_client: TestClient) -> None:
    problem = assert_problem(idle_client.get("/v1/jobs", params={"state": "lost"}), 422, "invalid-request")
    assert "'queued'" in problem["detail"]


def test_an_unknown_job_is_404_everywhere(idle_client: TestClient) -> None:
    for path in ("x", "x/outcomes", "x/events", "%F0%9F%98%80"):
        assert_problem(idle_client.get(f"/v1/jobs/{path}"), 404, "job-not-found")
    assert_problem(idle_client.delete("/v1/jobs/x"), 404, "job-not-found")


def test_a_cancelled_job_cannot_be_cancelled_again(idle_client: TestClient) -> None:
    job_id = submit(idle_client)
    assert idle_client.delete(f"/v1/jobs/{job_id}").json()["state"] == "cancelled"
    assert_problem(idle_client.delete(f"/v1/jobs/{job_id}"), 409, "job-finished")


def test_outcomes_come_in_pages(client: TestClient) -> None:
    job_id = submit(client, Prefer="wait=30")
    first = client.get(f"/v1/jobs/{job_id}/outcomes", params={"limit": 2}).json()
    rest = client.get(f"/v1/jobs/{job_id}/outcomes", params={"cursor": first["next_cursor"]}).json()
    assert [each["ordinal"] for each in first["outcomes"] + rest["outcomes"]] == [0, 1, 2]
    assert rest["next_cursor"] is None


def test_a_cursor_of_another_jobs_outcomes_is_refused(client: TestClient) -> None:
    first, second = submit(client, Prefer="wait=30"), submit(client, Prefer="wait=30")
    cursor = client.get(f"/v1/jobs/{first}/outcomes", params={"limit": 1}).json()["next_cursor"]
    answer = client.get(f"/v1/jobs/{second}/outcomes", params={"cursor": cursor})
    assert_problem(answer, 422, "bad-cursor")


def test_events_end_with_the_final_state(client: TestClient) -> None:
    job_id = submit(client)
    with client.stream("GET", f"/v1/jobs/{job_id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [event.split("\n") for event in answer.read().decode().strip().split("\n\n")]
    assert all(name == "event: progress" for name, _ in events[:-1])
    name, data = events[-1]
    assert name == "event: final"
    assert json.loads(data.removeprefix("data: ")) == client.get(f"/v1/jobs/{job_id}").json()


def test_events_of_a_finished_job_are_its_final_state_alone(client: TestClient) -> None:
    job_id = submit(client, Prefer="wait=30")
    assert client.get(f"/v1/jobs/{job_id}/events").text.count("event:") == 1


@pytest.mark.parametrize("path", ["", "/outcomes"])
def test_a_job_of_a_deleted_collection_is_gone(client: TestClient, path: str) -> None:
    job_id = submit(client, Prefer="wait=30")
    client.delete("/v1/collections/demo")
    assert_problem(client.get(f"/v1/jobs/{job_id}{path}"), 404, "job-not-found")
