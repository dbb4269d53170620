"""/v1/classify/sequence without a trained classifier, and what holds for every batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api.schemas.classification import MAX_CLASSIFIED_CHARS
from app.api.schemas.inspection import MAX_TEXTS
from app.engine.embedder import Embedder
from tests.api.stand_up import assert_problem, client_of, settings_in


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
        ({"texts": ["a"]}, "exactly one of labels and classifier"),
        ({"texts": ["a"], "labels": ["x"], "classifier": "y"}, "exactly one of labels and classifier"),
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
