"""Offsets for clients whose strings are UTF-16. A slice of the encoded text is what such a client slices."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.schemas.answers import AnswerResponse
from tests.api.stand_up import client_of, settings_in, worker_of
from tests.reading_substitutes import overlap_models

ASYMMETRIC = "/v1/collections/odd/search/asymmetric"
ANSWER = "/v1/collections/odd/answer"
FILLER = " ".join(f"𝒻iller{i}" for i in range(150))
"""Fills a passage; each word begins with a code point of two units."""
TEXTS = {
    "astral": "😀😀 The 𝓫ridge 👩‍👩‍👧 crosses the river. 😀",
    "combining": "The cafe\u0301 bridge a\u030a\u0323 crosses 🏳️‍🌈 the rive\u0301r.",
    "long": f"{FILLER} bridge.\n\n{FILLER} The bridge crosses the wide 𝓻iver.",
    "plain": "The bridge crosses the river.",
}


@pytest.fixture(scope="module")
def odd_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = settings_in(tmp_path_factory.mktemp("utf16"))
    with worker_of(settings), client_of(settings, reading=overlap_models()) as client:
        assert client.put("/v1/collections/odd").status_code == 201
        documents = [{"id": name, "text": text} for name, text in TEXTS.items()]
        client.post(
            "/v1/collections/odd/documents", json={"documents": documents}, headers={"Prefer": "wait=30"}
        )
        yield client


def sliced(text: str, place: dict[str, Any]) -> str:
    """What `text.slice(start, end)` is in JavaScript."""
    return text.encode("utf-16-le")[2 * place["start"] : 2 * place["end"]].decode("utf-16-le")


def asked(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_passages_and_answers_of_hits_are_what_a_client_slices(odd_client: TestClient) -> None:
    body = {"query": "the bridge crosses", "answers": True, "offsets": "utf16", "passages_per_hit": 20}
    hits = asked(odd_client, ASYMMETRIC, body)["hits"]
    assert {hit["document_id"] for hit in hits} == TEXTS.keys()
    for hit in hits:
        text = TEXTS[hit["document_id"]]
        assert sliced(text, hit["answer"]) == hit["answer"]["answer"]
        for passage in hit["passages"]:
            assert sliced(text, passage) == passage["text"]
    assert any(passage["start"] > 1_000 for hit in hits for passage in hit["passages"])


def test_answers_of_a_collection_are_what_a_client_slices(odd_client: TestClient) -> None:
    body = {"question": "what crosses the bridge", "offsets": "utf16", "top_k": 50}
    answers = asked(odd_client, ANSWER, body)["answers"]
    assert len({answer["document_id"] for answer in answers}) > 2
    for answer in answers:
        text = TEXTS[answer["document_id"]]
        assert sliced(text, answer) == answer["answer"]
        assert sliced(text, answer["passage"]) == answer["passage"]["text"]


def test_answers_of_given_contexts_are_what_a_client_slices(odd_client: TestClient) -> None:
    contexts = list(TEXTS.values())
    body = {"question": "what crosses the bridge", "contexts": contexts, "offsets": "utf16", "top_k": 50}
    answers = asked(odd_client, "/v1/answer", body)["answers"]
    assert {answer["context"] for answer in answers} >= {0, 1, 2}
    for answer in answers:
        assert sliced(contexts[answer["context"]], answer) == answer["answer"]


def test_unless_asked_for_offsets_count_code_points(odd_client: TestClient) -> None:
    for hit in asked(odd_client, ASYMMETRIC, {"query": "the bridge crosses", "answers": True})["hits"]:
        text, answer = TEXTS[hit["document_id"]], hit["answer"]
        assert text[answer["start"] : answer["end"]] == answer["answer"]
        assert all(text[p["start"] : p["end"]] == p["text"] for p in hit["passages"])


def test_the_next_page_may_count_otherwise(odd_client: TestClient) -> None:
    body = {"query": "the bridge crosses", "top_k": 2}
    cursor = asked(odd_client, ASYMMETRIC, body)["next_cursor"]
    page = asked(odd_client, ASYMMETRIC, {**body, "cursor": cursor, "offsets": "utf16"})
    assert len(page["hits"]) == 2


def test_another_counting_is_refused_with_those_that_are_allowed(odd_client: TestClient) -> None:
    answer = odd_client.post(ASYMMETRIC, json={"query": "x", "offsets": "bytes"})
    assert answer.status_code == 422
    assert "'code_points' or 'utf16'" in answer.json()["detail"]


def test_the_description_says_what_offsets_count() -> None:
    assert "`offsets`" in (AnswerResponse.model_fields["start"].description or "")
