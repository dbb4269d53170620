"""/v1/collections/{collection}/answer, /v1/answer, and the reranked search over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from tests.api.stand_up import DOCUMENTS, assert_problem, client_of, fill, settings_in, worker_of
from tests.reading_substitutes import MAX_QUESTION_TOKENS, overlap_models

ANSWER = "/v1/collections/demo/answer"
CONTEXTS = "/v1/answer"
ASYMMETRIC = "/v1/collections/demo/search/asymmetric"
QUESTION = "what crosses the river"


@pytest.fixture(scope="module")
def reading_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings: Settings = settings_in(tmp_path_factory.mktemp("answers"))
    with worker_of(settings), client_of(settings, reading=overlap_models()) as client:
        fill(client)
        yield client


def test_a_question_is_answered_with_quotations(reading_client: TestClient) -> None:
    body = reading_client.post(ANSWER, json={"question": QUESTION, "top_k": 2}).json()
    texts = {str(each["id"]): str(each["text"]) for each in DOCUMENTS}
    assert len(body["answers"]) == 2
    for answer in body["answers"]:
        text = texts[answer["document_id"]]
        assert text[answer["start"] : answer["end"]] == answer["answer"]
        assert answer["passage"] == {"start": 0, "end": len(text), "text": text}
    assert body["answers"][0]["document_id"] == "bridge"
    assert body["answerable_probability"] == body["answers"][0]["score"]
    assert body["no_answer"] is (body["answerable_probability"] < 0.5)
    assert body["question"] == {"n_tokens": 4, "max_tokens": MAX_QUESTION_TOKENS, "truncated": False}
    assert (body["n_read"], body["n_candidates"]) == (3, 3)


def test_answers_below_the_least_score_are_left_out(reading_client: TestClient) -> None:
    body = reading_client.post(ANSWER, json={"question": QUESTION, "min_score": 1.0}).json()
    assert body["answers"] == []
    assert 0 < body["answerable_probability"] < 1


def test_a_filter_decides_what_is_read(reading_client: TestClient) -> None:
    asked = {"question": QUESTION, "filter": {"field": "year", "eq": 1999}}
    body = reading_client.post(ANSWER, json=asked).json()
    assert {answer["document_id"] for answer in body["answers"]} == {"a/b"}


def test_given_contexts_are_read_but_the_blank_ones(reading_client: TestClient) -> None:
    contexts = ["", "The bridge crosses the river.", "A castle."]
    body = reading_client.post(CONTEXTS, json={"question": QUESTION, "contexts": contexts}).json()
    best = body["answers"][0]
    assert best["context"] == 1
    assert contexts[1][best["start"] : best["end"]] == best["answer"] == "bridge"
    assert [each["context"] for each in body["unread"]] == [0]


def test_no_contexts_give_no_answers(reading_client: TestClient) -> None:
    body = reading_client.post(CONTEXTS, json={"question": QUESTION, "contexts": []}).json()
    assert (body["answers"], body["unread"], body["no_answer"], body["answerable_probability"]) == (
        [],
        [],
        True,
        0,
    )


@pytest.mark.parametrize(
    "question", ["the of and", "?!", "\U0001f600", "\x00 x", "x" * 10_000, "c++", "title:x"]
)
@pytest.mark.parametrize("path", [ANSWER, CONTEXTS, ASYMMETRIC])
def test_odd_questions_have_a_defined_answer(reading_client: TestClient, path: str, question: str) -> None:
    body = {
        ANSWER: {"question": question},
        CONTEXTS: {"question": question, "contexts": ["The bridge 😀 crosses the river.", "?"]},
        ASYMMETRIC: {"query": question, "rerank": True, "answers": True},
    }[path]
    assert reading_client.post(path, json=body).status_code == 200


def test_a_blank_question_is_422(reading_client: TestClient) -> None:
    for path, more in ((ANSWER, {}), (CONTEXTS, {"contexts": ["x"]})):
        answer = reading_client.post(path, json={"question": " \n", **more})
        problem = assert_problem(answer, 422, "blank-text")
        assert problem["errors"][0]["location"] == ["body", "question"]


def test_a_question_beyond_the_limit_is_cut_or_refused(reading_client: TestClient) -> None:
    question = "bridge river " * 10
    for path, more in ((ANSWER, {}), (CONTEXTS, {"contexts": ["The bridge."]})):
        cut = reading_client.post(path, json={"question": question, **more})
        assert cut.json()["question"] == {
            "n_tokens": 20,
            "max_tokens": MAX_QUESTION_TOKENS,
            "truncated": True,
        }
        refused = reading_client.post(path, json={"question": question, "truncate": False, **more})
        problem = assert_problem(refused, 422, "text-too-long")
        assert (problem["n_tokens"], problem["max_tokens"]) == (20, MAX_QUESTION_TOKENS)


def test_contexts_that_are_too_long_together_are_422(reading_client: TestClient) -> None:
    answer = reading_client.post(CONTEXTS, json={"question": "x", "contexts": ["a" * 150_000] * 2})
    problem = assert_problem(answer, 422, "invalid-request")
    assert "300000 characters together, at most 200000 may be" in problem["detail"]


def test_search_reranks_where_there_is_a_model_and_shows_every_stage(reading_client: TestClient) -> None:
    body = reading_client.post(ASYMMETRIC, json={"query": "bridge river", "answers": True}).json()
    assert body["reranking"] == {
        "model": "word-overlap",
        "n_candidates": 3,
        "n_reranked": 3,
        "n_truncated": 0,
        "n_query_tokens": 2,
        "max_query_tokens": MAX_QUESTION_TOKENS,
        "query_truncated": False,
    }
    hit = body["hits"][0]
    assert hit["document_id"] == "bridge"
    assert {"lexical", "similarity", "fused", "rerank", "relevance", "score"} <= hit.keys()
    assert hit["rerank"] == hit["passages"][0]["rerank"] == 1.0
    assert hit["answer"]["answer"] == "crosses"
    assert {"rerank", "read"} <= body["timings_ms"].keys()


def test_search_does_not_rerank_where_it_is_not_wanted(reading_client: TestClient) -> None:
    body = reading_client.post(ASYMMETRIC, json={"query": "bridge river", "rerank": False}).json()
    assert body["reranking"] is None
    assert all(hit["rerank"] is hit["answer"] is None for hit in body["hits"])
    assert [hit["score"] for hit in body["hits"]] == [hit["fused"] for hit in body["hits"]]


def test_search_with_a_budget_tells_how_far_it_came(reading_client: TestClient) -> None:
    body = reading_client.post(ASYMMETRIC, json={"query": "bridge river", "budget_ms": 0}).json()
    assert (body["reranking"]["n_reranked"], body["reranking"]["n_candidates"]) == (0, 3)
    assert len(body["hits"]) == 3


def test_a_query_longer_than_the_reranker_takes_is_left_to_the_first_stage(
    reading_client: TestClient,
) -> None:
    query = "bridge river " * 10
    body = reading_client.post(ASYMMETRIC, json={"query": query}).json()
    assert body["reranking"] is None
    assert body["notices"] == ["not reranked: the query has 20 tokens, the reranker takes 16"]
    asked = reading_client.post(ASYMMETRIC, json={"query": query, "rerank": True}).json()
    assert asked["reranking"]["query_truncated"] is True
    refused = reading_client.post(ASYMMETRIC, json={"query": query, "rerank": True, "truncate": False})
    problem = assert_problem(refused, 422, "text-too-long")
    assert (problem["n_tokens"], problem["max_tokens"]) == (20, MAX_QUESTION_TOKENS)


def test_pages_of_a_reranked_search_go_on_without_a_gap(reading_client: TestClient) -> None:
    asked = {"query": "bridge river", "rerank": True}
    whole = reading_client.post(ASYMMETRIC, json=asked).json()["hits"]
    first = reading_client.post(ASYMMETRIC, json={**asked, "top_k": 1}).json()
    rest = reading_client.post(ASYMMETRIC, json={**asked, "top_k": 9, "cursor": first["next_cursor"]}).json()
    assert [*first["hits"], *rest["hits"]] == whole


def test_a_collection_says_how_many_candidates(reading_client: TestClient) -> None:
    settings = "/v1/collections/demo/search-settings"
    assert reading_client.put(settings, json={"candidates": 2}).status_code == 200
    body = reading_client.post(ASYMMETRIC, json={"query": "bridge river"}).json()
    assert body["reranking"]["n_candidates"] == 2
    more = reading_client.post(ASYMMETRIC, json={"query": "bridge river", "candidates": 3}).json()
    assert more["reranking"]["n_candidates"] == 3
    reading_client.put(settings, json={})


def test_without_a_model_the_endpoints_say_how_to_get_one(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        client.put("/v1/collections/demo")
        for path, body, setting in (
            (ANSWER, {"question": "x"}, "BIFOCAL_READER"),
            (CONTEXTS, {"question": "x", "contexts": []}, "BIFOCAL_READER"),
            (ASYMMETRIC, {"query": "x", "answers": True}, "BIFOCAL_READER"),
            (ASYMMETRIC, {"query": "x", "rerank": True}, "BIFOCAL_RERANKER"),
        ):
            problem = assert_problem(client.post(path, json=body), 409, "model-not-configured")
            assert setting in problem["detail"]
        assert client.post(ASYMMETRIC, json={"query": "x"}).json()["reranking"] is None


def test_models_are_listed_with_their_roles(reading_client: TestClient) -> None:
    models = reading_client.get("/v1/models").json()
    roles = {each["role"]: each for each in models["models"]}
    assert list(roles) == ["embedder", "reranker", "reader"]
    reranker = roles["reranker"]
    assert (reranker["name"], reranker["max_tokens"], reranker["max_question_tokens"]) == (
        "word-overlap",
        384,
        16,
    )
    assert reranker["fingerprint"] == "word-overlap-1"
    assert models["limits"]["max_contexts_chars"] == 200_000
