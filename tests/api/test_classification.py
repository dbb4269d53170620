"""/v1/classify/sequence without a trained classifier, and what holds for every batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.schemas.classification import MAX_CLASSIFIED_CHARS, MAX_TAGGED_CHARS
from app.api.schemas.inspection import MAX_TEXTS
from app.engine.embedder import Embedder
from app.engine.text_models import load_text_models
from tests.api.stand_up import assert_problem, client_of, settings_in
from tests.text_substitutes import TAGS, tiny_text_settings


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(settings_in(tmp_path)) as client:
        yield client


@pytest.fixture
def real_client(tmp_path: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """With the packaged encoder, which outlives the service."""
    monkeypatch.setattr(embedder, "close", lambda: None)
    with client_of(settings_in(tmp_path), embedder=embedder) as client:
        yield client


def classified(client: TestClient, *texts: str, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/classify/sequence", json={"texts": texts, **fields})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def best(results: list[dict[str, Any]]) -> list[str]:
    return [each["labels"][0]["label"] for each in results]


def test_labels_that_fit_rank_first(real_client: TestClient) -> None:
    texts = ("The central bank raised interest rates.", "She scored twice in the second half.")
    results = classified(real_client, *texts, labels=["football", "economy", "cooking"])
    assert best(results) == ["economy", "football"]
    assert sum(each["score"] for each in results[0]["labels"]) == pytest.approx(1, abs=1e-5)


def test_a_description_is_compared_instead_of_its_label(real_client: TestClient) -> None:
    labels = [{"label": "A", "description": "cooking and recipes"}, {"label": "B", "description": "sport"}]
    assert best(classified(real_client, "Add salt to the soup.", "She won the race.", labels=labels)) == [
        "A",
        "B",
    ]


def test_several_labels_are_scored_each_for_itself(real_client: TestClient) -> None:
    text = "The football club borrowed money from its bank."
    alone = classified(real_client, text, labels=["banking"], multi_label=True)[0]["labels"][0]
    among = classified(real_client, text, labels=["football", "banking", "gardening"], multi_label=True)[0]
    scores = {each["label"]: each["score"] for each in among["labels"]}
    assert scores["banking"] == pytest.approx(alone["score"], abs=1e-4)
    assert min(scores["football"], scores["banking"]) > scores["gardening"]


def test_a_batch_is_answered_as_its_texts_alone(real_client: TestClient) -> None:
    texts = ["short", "a longer text about rivers and bridges " * 12, "The rate.", "word " * 400]
    together = classified(real_client, *texts, labels=["geography", "finance"])
    for text, result in zip(texts, together, strict=True):
        (alone,) = classified(real_client, text, labels=["geography", "finance"])
        assert (alone["n_tokens"], alone["truncated"]) == (result["n_tokens"], result["truncated"])
        for one, other in zip(alone["labels"], result["labels"], strict=True):
            assert one["label"] == other["label"]
            assert one["score"] == pytest.approx(other["score"], abs=0.02)
    assert [each["truncated"] for each in together] == [False, False, False, True]


def test_without_truncation_a_long_text_is_named(real_client: TestClient) -> None:
    body = {"texts": [" ", "short", "word " * 400], "labels": ["a", "b"], "truncate": False}
    problem = assert_problem(real_client.post("/v1/classify/sequence", json=body), 422, "text-too-long")
    assert (problem["n_tokens"], problem["max_tokens"]) == (402, 256)
    assert problem["errors"][0]["location"] == ["body", "texts", 2]


@pytest.mark.parametrize(
    "text", ["a\0b", "\ufeffx", "\u202eabc\u202c", "👩‍👩‍👧", "x" * 100_000, "!!!", "日本語"]
)
def test_odd_texts_have_a_defined_answer(real_client: TestClient, text: str) -> None:
    (result,) = classified(real_client, text, labels=["a", "b"])
    assert result["error"] is None
    assert len(result["labels"]) == 2


def test_a_blank_text_has_an_error_and_the_others_succeed(client: TestClient) -> None:
    results = classified(client, "river", "", "\u200b \n", "bridge", labels=["river", "bridge"])
    assert best([results[0], results[3]]) == ["river", "bridge"]
    for blank in results[1:3]:
        assert "blank" in blank["error"]
        assert (blank["labels"], blank["n_tokens"]) == ([], 0)
    assert [each["error"] for each in classified(client, " ", labels=["a"])] == [results[1]["error"]]


def test_nothing_gives_nothing(client: TestClient) -> None:
    assert classified(client, labels=["a", "b"]) == []


def test_equal_labels_come_in_their_own_order_and_top_k_changes_no_score(client: TestClient) -> None:
    labels = [{"label": name, "description": "river"} for name in ("c", "a", "b")]
    whole = classified(client, "river", labels=labels)[0]["labels"]
    assert [each["label"] for each in whole] == ["a", "b", "c"]
    assert classified(client, "river", labels=labels, top_k=2)[0]["labels"] == whole[:2]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"texts": ["a"]}, "exactly one of labels, classifier and model"),
        ({"texts": ["a"], "labels": ["x"], "classifier": "y"}, "exactly one of labels, classifier and model"),
        ({"texts": ["a"], "labels": ["x"], "version": 1}, "version goes with classifier"),
        ({"texts": ["a"], "classifier": "x", "multi_label": True}, "multi_label goes with labels"),
        ({"texts": ["a"], "labels": ["x", {"label": "x"}]}, "same label twice"),
        ({"texts": ["a"], "labels": []}, "at least 1"),
        ({"texts": ["a"] * (MAX_TEXTS + 1), "labels": ["x"]}, "at most 1000"),
        ({"texts": ["a" * (MAX_CLASSIFIED_CHARS // 25)] * 26, "labels": ["x"]}, "at most 2000000"),
        ({"texts": ["a"], "labels": ["x"], "top_k": 0}, "greater than or equal to 1"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    client: TestClient, body: dict[str, Any], message: str
) -> None:
    problem = assert_problem(client.post("/v1/classify/sequence", json=body), 422, "invalid-request")
    assert message in problem["detail"]


def test_a_blank_label_is_refused_by_place(client: TestClient) -> None:
    body = {"texts": ["a"], "labels": ["x", "\u200b"]}
    problem = assert_problem(client.post("/v1/classify/sequence", json=body), 422, "blank-text")
    assert problem["errors"][0]["location"] == ["body", "labels", 1]


@pytest.fixture(scope="module")
def model_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """With a tiny tagger, a tiny classifier `sentiment` and a tiny lens."""
    folder = tmp_path_factory.mktemp("models")
    settings = settings_in(folder, **tiny_text_settings(folder))
    with client_of(settings, texts=load_text_models(settings)) as client:
        yield client


def tagged(client: TestClient, *texts: str, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/classify/token", json={"texts": texts, **fields})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_entities_quote_the_text_in_both_countings(model_client: TestClient) -> None:
    text = "😀 Marie Curie was born in Warsaw and worked at the University of Paris. " * 20
    (result,) = tagged(model_client, text)
    assert result["n_windows"] > 1
    assert result["entities"]
    units = text.encode("utf-16-le")
    for entity in result["entities"]:
        assert text[entity["start"] : entity["end"]] == entity["word"]
        sliced = units[2 * entity["start_utf16"] : 2 * entity["end_utf16"]]
        assert sliced.decode("utf-16-le") == entity["word"]
        assert 0 < entity["score"] <= 1
        assert entity["entity_group"] in {"PER", "ORG", "LOC", "MISC"}


def test_a_blank_text_has_no_entities_but_an_error(model_client: TestClient) -> None:
    results = tagged(model_client, "", "Marie", "\u200b", aggregation="max")
    assert [each["error"] is None for each in results] == [False, True, False]
    assert tagged(model_client) == []


def test_a_fine_tuned_model_is_asked_by_its_name(model_client: TestClient) -> None:
    body = {"texts": ["good", " ", "bad"], "model": "sentiment"}
    answer = model_client.post("/v1/classify/sequence", json=body).json()
    assert (answer["task"], answer["model"], answer["scope_threshold"]) == ("model", "sentiment", None)
    assert [each["error"] is None for each in answer["results"]] == [True, False, True]
    assert {each["label"] for each in answer["results"][0]["labels"]} == {"negative", "positive"}
    assert classified(model_client, model="sentiment") == []


def test_a_model_that_is_not_there_is_a_conflict_that_names_the_setting(
    client: TestClient, model_client: TestClient
) -> None:
    for where, path, body, setting in (
        (client, "classify/token", {"texts": ["a"]}, "BIFOCAL_TAGGER"),
        (client, "classify/sequence", {"texts": ["a"], "model": "x"}, "BIFOCAL_SEQUENCE_MODELS"),
        (model_client, "classify/sequence", {"texts": ["a"], "model": "x"}, "there are sentiment"),
    ):
        problem = assert_problem(where.post(f"/v1/{path}", json=body), 409, "model-not-configured")
        assert setting in problem["detail"]


def test_models_of_single_texts_are_listed_with_their_labels(model_client: TestClient) -> None:
    listed = {each["role"]: each for each in model_client.get("/v1/models").json()["models"]}
    assert listed["sequence"]["labels"] == ["negative", "positive"]
    assert listed["tagger"]["labels"] == list(TAGS)


def test_too_many_characters_to_tag_are_refused(model_client: TestClient) -> None:
    body = {"texts": ["a" * MAX_TAGGED_CHARS, "b"]}
    problem = assert_problem(model_client.post("/v1/classify/token", json=body), 422, "invalid-request")
    assert "100001 characters, at most 100000" in problem["detail"]


def test_masks_are_filled_by_the_lens(model_client: TestClient) -> None:
    text = "Warsaw is the [MASK] of Poland."
    answer = model_client.post("/v1/inspect/fill-mask", json={"text": text, "top_k": 3}).json()
    (mask,) = answer["masks"]
    assert text[mask["start"] : mask["end"]] == "[MASK]"
    logits = [each["logit"] for each in mask["fillings"]]
    assert logits == sorted(logits, reverse=True)
    assert len(logits) == 3
    refused = model_client.post("/v1/inspect/fill-mask", json={"text": "no mask"})
    assert "[MASK]" in assert_problem(refused, 422, "invalid-request")["detail"]


def test_next_sentences_are_told_by_the_lens(model_client: TestClient) -> None:
    body = {"text": "She opened the door.", "next_text": "Nobody was there."}
    answer = model_client.post("/v1/inspect/next-sentence", json=body).json()
    assert 0 < answer["score"] < 1
    assert (answer["score"] > 0.5) == (answer["logit"] > 0)
    long = model_client.post("/v1/inspect/next-sentence", json={**body, "next_text": "word " * 500})
    assert long.json()["truncated"] is True
    refused = model_client.post(
        "/v1/inspect/next-sentence", json={**body, "next_text": "word " * 500, "truncate": False}
    )
    assert_problem(refused, 422, "text-too-long")


def test_without_a_lens_the_answer_is_a_conflict(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path, models=tmp_path)) as client:
        answer = client.post("/v1/inspect/fill-mask", json={"text": "[MASK]"})
        assert "BIFOCAL_LENS" in assert_problem(answer, 409, "model-not-configured")["detail"]
