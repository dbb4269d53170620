"""/v1/collections/{collection}/files"""

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem

PATH = "/v1/collections/demo/files"
WAIT = {"Prefer": "wait=30"}


def test_each_file_gets_an_outcome_and_a_bad_one_spoils_no_other(client: TestClient) -> None:
    files = [
        ("files", ("a.txt", b"Of lighthouses.", "text/plain")),
        ("files", ("b.bin", b"\xff\xfe\xff", "application/octet-stream")),
        ("files", ("../c d.txt", b"Of keepers.", "text/plain")),
    ]
    answer = client.post(PATH, files=files, headers=WAIT)
    assert answer.status_code == 200
    assert [(o["document_id"], o["status"]) for o in answer.json()["outcomes"]] == [
        ("a.txt", "created"),
        ("b.bin", "rejected"),
        ("../c d.txt", "created"),
    ]
    shown = client.get("/v1/collections/demo/documents/%2E%2E%2Fc%20d.txt").json()
    assert shown["text"] == "Of keepers."


def test_files_are_accepted_as_a_job(idle_client: TestClient) -> None:
    answer = idle_client.post(PATH, files=[("files", ("a.txt", b"x"))])
    assert answer.status_code == 202
    assert answer.json()["kind"] == "files"
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


def test_a_form_without_files_has_no_outcomes(client: TestClient) -> None:
    answer = client.post(
        PATH, content=b"--x--\r\n", headers={**WAIT, "Content-Type": "multipart/form-data; boundary=x"}
    )
    assert answer.json()["outcomes"] == []


def test_parts_that_are_no_files_are_refused(client: TestClient) -> None:
    answer = client.post(PATH, files=[("files", ("a.txt", b"x"))], data={"language": "en"})
    assert "parts named files" in assert_problem(answer, 422, "invalid-request")["detail"]
    answer = client.post(PATH, files=[("files", (None, b"x"))])
    assert "no file name" in assert_problem(answer, 422, "invalid-request")["detail"]


@pytest.mark.parametrize(
    ("content_type", "status", "slug"),
    [
        ("application/json", 415, "unsupported-media-type"),
        ("multipart/form-data", 400, "malformed-request"),
        ("multipart/form-data; boundary=x", 400, "malformed-request"),
    ],
)
def test_a_body_that_is_no_form_is_refused(
    client: TestClient, content_type: str, status: int, slug: str
) -> None:
    answer = client.post(PATH, content=b'{"files": []}', headers={"Content-Type": content_type})
    assert_problem(answer, status, slug)


def test_more_files_than_max_batch_are_refused(client: TestClient) -> None:
    answer = client.post(PATH, files=[("files", (f"{i}.txt", b"x")) for i in range(51)])
    assert answer.status_code == 400
    assert_problem(answer, 400, "malformed-request")


def test_files_for_an_unknown_collection_are_refused(client: TestClient) -> None:
    answer = client.post("/v1/collections/other/files", files=[("files", ("a.txt", b"x"))])
    assert_problem(answer, 404, "collection-not-found")
