"""/v1/collections/{collection}/documents"""

import json
import threading
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.api.stand_up import DOCUMENTS, assert_problem

PATH = "/v1/collections/demo/documents"
WAIT = {"Prefer": "wait=30"}
NDJSON = {"Content-Type": "application/x-ndjson"}


def url_of(document_id: str) -> str:
    return f"{PATH}/{quote(document_id, safe='').replace('.', '%2E')}"


# Batches --------------------------------------------------------------------------------------------


def test_a_batch_is_accepted_as_a_job_that_location_leads_to(idle_client: TestClient) -> None:
    answer = idle_client.post(PATH, json={"documents": DOCUMENTS})
    assert answer.status_code == 202
    assert answer.json()["state"] == "queued"
    assert answer.json()["n_inputs"] == 3
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    assert idle_client.get(answer.headers["location"]).json() == answer.json()


def test_prefer_wait_answers_with_the_outcome_of_each_document(client: TestClient) -> None:
    answer = client.post(PATH, json={"documents": DOCUMENTS[:2]}, headers=WAIT)
    assert answer.status_code == 200
    assert answer.headers["preference-applied"] == "wait=30"
    assert answer.json()["job"]["state"] == "succeeded"
    assert [(each["ordinal"], each["document_id"], each["status"]) for each in answer.json()["outcomes"]] == [
        (0, "a/b", "unchanged"),
        (1, "bridge", "unchanged"),
    ]


@pytest.mark.parametrize("prefer", ["respond-async", "wait=0", "wait=soon", "handling=lenient", "wait", ""])
def test_other_preferences_do_not_wait(idle_client: TestClient, prefer: str) -> None:
    answer = idle_client.post(PATH, json={"documents": DOCUMENTS}, headers={"Prefer": prefer})
    assert answer.status_code == 202
    assert "preference-applied" not in answer.headers


def test_a_wait_that_ends_too_early_gives_the_job(idle_client: TestClient) -> None:
    began = time.monotonic()
    answer = idle_client.post(
        PATH, json={"documents": DOCUMENTS}, headers={"Prefer": 'handling=strict, Wait="1"; x=y'}
    )
    assert answer.status_code == 202
    assert time.monotonic() - began >= 1


def test_an_empty_batch_has_no_outcomes(client: TestClient) -> None:
    for content, media_type in ((b'{"documents": []}', "application/json"), (b"\n", "application/x-ndjson")):
        answer = client.post(PATH, content=content, headers={**WAIT, "Content-Type": media_type})
        assert answer.status_code == 200
        assert answer.json()["outcomes"] == []


def test_blank_text_is_rejected_by_its_place_and_the_others_succeed(client: TestClient) -> None:
    batch = [{"id": "x", "text": "Fine."}, {"id": "y", "text": " \n"}, {"id": "z", "text": "Also fine."}]
    outcomes = client.post(PATH, json={"documents": batch}, headers=WAIT).json()["outcomes"]
    assert [each["status"] for each in outcomes] == ["created", "rejected", "created"]
    assert outcomes[1]["ordinal"] == 1
    assert "text" in outcomes[1]["error"]


def test_ndjson_is_one_document_a_line(client: TestClient) -> None:
    lines = b'{"id": "x", "text": "One."}\r\n\n  {"id": "y", "text": "Two."}'
    answer = client.post(PATH, content=lines, headers={**WAIT, **NDJSON})
    assert [each["document_id"] for each in answer.json()["outcomes"]] == ["x", "y"]
    assert client.get(url_of("y")).json()["text"] == "Two."


def test_a_line_of_ndjson_that_is_not_json_is_named_and_nothing_is_stored(client: TestClient) -> None:
    lines = b'{"id": "x", "text": "One."}\n\n{"id": "y", "text": }\n'
    answer = client.post(PATH, content=lines, headers={**WAIT, **NDJSON})
    problem = assert_problem(answer, 400, "malformed-request")
    assert problem["detail"].startswith("line 3 of the body: ")
    assert client.get(url_of("x")).status_code == 404


@pytest.mark.parametrize(
    ("document", "location"),
    [
        ({"id": "x"}, ["text"]),
        ({"text": "x"}, ["id"]),
        ({"id": 5, "text": "x"}, ["id"]),
        ({"id": "", "text": "x"}, ["id"]),
        ({"id": "x", "text": 5}, ["text"]),
        ({"id": "x", "text": None}, ["text"]),
        ({"id": "x", "text": "x", "tittle": "x"}, ["tittle"]),
        ({"id": "x", "text": "x", "metadata": []}, ["metadata"]),
        ({"id": "x", "text": "x", "metadata": {"a": {"b": 1}}}, ["metadata", "a"]),
        ([], []),
        (None, []),
    ],
)
def test_a_batch_with_a_document_of_the_wrong_shape_is_refused_as_a_whole(
    client: TestClient, document: Any, location: list[str]
) -> None:
    batch = [{"id": "fine", "text": "Fine."}, document]
    body = json.dumps({"documents": batch}).encode()
    lines = "\n".join(json.dumps(each) for each in batch).encode()
    for answer in (
        client.post(PATH, content=body, headers={**WAIT, "Content-Type": "application/json"}),
        client.post(PATH, content=lines, headers={**WAIT, **NDJSON}),
    ):
        problem = assert_problem(answer, 422, "invalid-request")
        assert problem["errors"][0]["location"] == ["body", "documents", 1, *location]
    assert_problem(client.get(url_of("fine")), 404, "document-not-found")


def test_a_batch_larger_than_max_batch_is_refused(client: TestClient) -> None:
    batch = [{"id": str(i), "text": "x"} for i in range(51)]
    answer = client.post(PATH, json={"documents": batch}, headers=WAIT)
    assert "up to 50" in assert_problem(answer, 422, "invalid-request")["detail"]
    assert client.get("/v1/collections/demo").json()["stats"]["n_documents"] == 3


def test_another_media_type_is_refused_with_those_that_are_read(client: TestClient) -> None:
    answer = client.post(PATH, content=b"x", headers={"Content-Type": "text/csv"})
    detail = assert_problem(answer, 415, "unsupported-media-type")["detail"]
    assert "application/json" in detail
    assert "application/x-ndjson" in detail


def test_documents_for_an_unknown_collection_are_refused(client: TestClient) -> None:
    answer = client.post("/v1/collections/other/documents", json={"documents": DOCUMENTS})
    assert_problem(answer, 404, "collection-not-found")


# One document ---------------------------------------------------------------------------------------


def test_put_creates_then_replaces_then_leaves_unchanged(client: TestClient) -> None:
    first = client.put(url_of("new"), json={"text": "One."})
    second = client.put(url_of("new"), json={"text": "Two."})
    third = client.put(url_of("new"), json={"text": "Two."})
    assert [(a.status_code, a.json()["status"]) for a in (first, second, third)] == [
        (201, "created"),
        (200, "updated"),
        (200, "unchanged"),
    ]
    assert client.get(url_of("new")).json()["text"] == "Two."


def test_a_document_comes_back_as_it_was_sent(client: TestClient) -> None:
    text = "\ufeffA\r\n\tb\x00c \u202e\u200dd\u0301 \U0001f600" + "x" * 10_000
    metadata = {"s": "é", "i": 2**62, "f": 0.1, "b": True, "n": None, "l": [1, "a", False]}
    client.put(url_of("odd"), json={"text": text, "title": "T\u0301", "metadata": metadata})
    shown = client.get(url_of("odd")).json()
    assert (shown["text"], shown["title"], shown["metadata"]) == (text, "T\u0301", metadata)
    assert [type(v) for v in shown["metadata"].values()] == [str, int, float, bool, type(None), list]
    assert shown["n_chars"] == len(text)


@pytest.mark.parametrize(
    "document_id",
    [
        "a/b",
        "..",
        ".",
        "a%2Fb",
        "%",
        "%25",
        "?",
        "#",
        "a b",
        "/",
        "//",
        "a/",
        "/a",
        "é",
        "\U0001f600",
        "\x00",
        '"',
        "x" * 512,
    ],
)
def test_any_string_of_up_to_512_bytes_is_an_id(client: TestClient, document_id: str) -> None:
    put = client.put(url_of(document_id), json={"text": "Some text."})
    assert put.json()["document_id"] == document_id
    assert client.get(url_of(document_id)).json()["id"] == document_id
    assert client.delete(url_of(document_id)).status_code == 204
    assert_problem(client.get(url_of(document_id)), 404, "document-not-found")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
@example("a%2Fb/%2e%2e")
def test_an_encoded_id_names_exactly_the_document_of_that_id(client: TestClient, document_id: str) -> None:
    client.post(PATH, json={"documents": [{"id": document_id, "text": "x"}]}, headers=WAIT)
    assert client.get(url_of(document_id)).json()["id"] == document_id


def test_a_slash_in_an_id_may_stay_as_it_is(client: TestClient) -> None:
    assert client.get(f"{PATH}/a/b").json()["id"] == "a/b"


def test_an_encoded_slash_never_ends_the_name_of_the_collection(client: TestClient) -> None:
    assert_problem(client.delete("/v1/collections/demo%2Fdocuments%2Fbridge"), 422, "invalid-request")
    assert client.get(url_of("bridge")).status_code == 200


def test_an_id_of_more_than_512_bytes_is_refused_with_the_limit(client: TestClient) -> None:
    answer = client.put(url_of("é" * 257), json={"text": "x"})
    assert "512 bytes" in assert_problem(answer, 422, "bad-document")["detail"]


def test_an_empty_id_is_refused(client: TestClient) -> None:
    for answer in (
        client.get(f"{PATH}/"),
        client.put(f"{PATH}/", json={"text": "x"}),
        client.delete(f"{PATH}/"),
    ):
        assert_problem(answer, 422, "invalid-request")


def test_a_single_document_that_the_worker_refuses_is_422(client: TestClient) -> None:
    answer = client.put(url_of("new"), json={"text": "\n"})
    assert "text" in assert_problem(answer, 422, "bad-document")["detail"]


def test_a_delete_is_204_and_then_404(client: TestClient) -> None:
    assert client.delete(url_of("bridge")).status_code == 204
    assert_problem(client.delete(url_of("bridge")), 404, "document-not-found")


def test_single_writes_give_the_job_when_the_worker_is_behind(idle_client: TestClient) -> None:
    for answer in (idle_client.put(url_of("x"), json={"text": "x"}), idle_client.delete(url_of("x"))):
        assert answer.status_code == 202
        assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


def test_a_single_write_whose_job_is_cancelled_says_so(idle_client: TestClient) -> None:
    def cancel() -> None:
        while not (jobs := idle_client.get("/v1/jobs").json()["jobs"]):
            time.sleep(0.01)
        idle_client.delete(f"/v1/jobs/{jobs[0]['id']}")

    canceller = threading.Thread(target=cancel)
    canceller.start()
    answer = idle_client.put(url_of("x"), json={"text": "x"}, headers=WAIT)
    canceller.join()
    assert "cancelled" in assert_problem(answer, 409, "job-failed")["detail"]


# Listing --------------------------------------------------------------------------------------------


def test_a_listing_goes_through_all_documents_by_id(client: TestClient) -> None:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = client.get(PATH, params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        found += [document["id"] for document in page["documents"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == ["a/b", "bridge", "castle"]


def test_a_full_last_page_has_no_cursor(client: TestClient) -> None:
    assert client.get(PATH, params={"limit": 3}).json()["next_cursor"] is None


def test_a_listing_shows_no_texts(client: TestClient) -> None:
    assert "text" not in client.get(PATH).json()["documents"][0]


@pytest.mark.parametrize("cursor", ["", "x", "é", "W10", "bnVsbA", "WyJqb2JzIE5vbmUiLCAiYSJd", "W" * 4096])
def test_a_cursor_that_this_listing_did_not_give_is_refused(client: TestClient, cursor: str) -> None:
    assert_problem(client.get(PATH, params={"cursor": cursor}), 422, "bad-cursor")


def test_a_cursor_of_another_collection_is_refused(client: TestClient) -> None:
    cursor = client.get(PATH, params={"limit": 1}).json()["next_cursor"]
    client.put("/v1/collections/other")
    answer = client.get("/v1/collections/other/documents", params={"cursor": cursor})
    assert "another listing" in assert_problem(answer, 422, "bad-cursor")["detail"]


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", ""])
def test_a_limit_outside_1_to_1000_is_refused(client: TestClient, limit: str) -> None:
    problem = assert_problem(client.get(PATH, params={"limit": limit}), 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["query", "limit"]
