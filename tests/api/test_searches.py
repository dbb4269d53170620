"""/v1/collections/{collection}/search"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.engine.embedder import Embeddings
from tests.api.stand_up import DOCUMENTS, assert_problem, client_of, settings_in
from tests.substitutes import WordHashEmbedder

ASYMMETRIC = "/v1/collections/demo/search/asymmetric"
SYMMETRIC = "/v1/collections/demo/search/symmetric"


def test_asymmetric_search_answers_with_documents_and_passages(client: TestClient) -> None:
    body = client.post(ASYMMETRIC, json={"query": "river valley", "top_k": 1}).json()
    (hit,) = body["hits"]
    assert (hit["document_id"], hit["title"], hit["metadata"]) == ("a/b", "Rivers", {"year": 1999})
    (passage,) = hit["passages"]
    text = str(DOCUMENTS[0]["text"])
    assert (passage["start"], passage["end"], passage["text"], passage["page"]) == (0, len(text), text, None)
    assert passage["similarity"] == hit["similarity"]
    assert body["query"] == {"n_tokens": 4, "max_tokens": 256, "truncated": False, "n_windows": 1}
    assert list(body["timings_ms"]) == ["encode", "retrieve", "fetch", "total"]


def test_symmetric_search_takes_a_text_or_an_id(client: TestClient) -> None:
    by_text = client.post(SYMMETRIC, json={"text": "A castle stands on the mountain."}).json()
    by_id = client.post(SYMMETRIC, json={"document_id": "castle"}).json()
    assert by_text["hits"][0]["document_id"] == "castle"
    assert len(by_text["hits"]) == 3
    assert {hit["document_id"] for hit in by_id["hits"]} == {"a/b", "bridge"}


@pytest.mark.parametrize("body", [{}, {"text": "x", "document_id": "castle"}, {"text": None}])
def test_symmetric_search_takes_exactly_one_of_both(client: TestClient, body: dict[str, object]) -> None:
    problem = assert_problem(client.post(SYMMETRIC, json=body), 422, "invalid-request")
    assert "exactly one of text and document_id" in problem["detail"]


def test_an_unknown_document_or_collection_is_404(client: TestClient) -> None:
    assert_problem(client.post(SYMMETRIC, json={"document_id": "x"}), 404, "document-not-found")
    for kind, body in (("asymmetric", {"query": "x"}), ("symmetric", {"text": "x"})):
        answer = client.post(f"/v1/collections/other/search/{kind}", json=body)
        assert_problem(answer, 404, "collection-not-found")


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_a_blank_query_is_422(client: TestClient, blank: str) -> None:
    problem = assert_problem(client.post(ASYMMETRIC, json={"query": blank}), 422, "blank-text")
    assert problem["errors"][0]["location"] == ["body", "query"]
    problem = assert_problem(client.post(SYMMETRIC, json={"text": blank}), 422, "blank-text")
    assert problem["errors"][0]["location"] == ["body", "text"]


@pytest.mark.parametrize(
    "query",
    [
        "c++",
        "AND",
        '"unbalanced',
        "title:x",
        "a:b",
        "*",
        "?!",
        "\U0001f600",
        "the of and",
        "\x00",
        "x" * 100_000,
    ],
)
def test_query_text_is_never_parsed(client: TestClient, query: str) -> None:
    assert len(client.post(ASYMMETRIC, json={"query": query}).json()["hits"]) == 3


def test_a_finished_write_is_seen_by_the_next_search(client: TestClient) -> None:
    def first() -> str:
        return str(
            client.post(ASYMMETRIC, json={"query": "quick lighthouse"}).json()["hits"][0]["document_id"]
        )

    client.put("/v1/collections/demo/documents/new", json={"text": "A quick lighthouse."})
    assert first() == "new"
    client.put("/v1/collections/demo/documents/new", json={"text": "Something else."})
    client.put("/v1/collections/demo/documents/newer", json={"text": "A quick lighthouse."})
    assert first() == "newer"
    client.delete("/v1/collections/demo/documents/newer")
    assert first() != "newer"


def test_a_search_too_many_is_refused_at_once_and_the_next_one_after_them_is_answered(tmp_path: Path) -> None:
    may_go_on, started = threading.Event(), threading.Semaphore(0)

    class Slow(WordHashEmbedder):
        def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
            started.release()
            may_go_on.wait(30)
            return super().encode_queries(texts, truncate=truncate)

    with client_of(settings_in(tmp_path, max_queue=2), embedder=Slow()) as client:
        client.put("/v1/collections/demo")
        with ThreadPoolExecutor(2) as threads:
            waiting = [threads.submit(client.post, ASYMMETRIC, json={"query": "river"}) for _ in range(2)]
            assert all(started.acquire(timeout=30) for _ in waiting)
            refused = client.post(ASYMMETRIC, json={"query": "river"})
            may_go_on.set()
        assert_problem(refused, 503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        assert [answer.result().status_code for answer in waiting] == [200, 200]
        assert client.post(ASYMMETRIC, json={"query": "river"}).status_code == 200
