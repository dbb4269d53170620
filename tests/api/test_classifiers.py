"""/v1/classifiers: training from examples, versions, roll-back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem, client_of, settings_in
from tests.substitutes import WordHashEmbedder

EXAMPLES: list[dict[str, Any]] = [
    {"text": f"{verb} the {noun} {end}", "label": label}
    for label, noun in (("cards", "card"), ("rates", "rate"))
    for verb in ("show", "find", "explain")
    for end in ("now", "please", "again")
]
OUT_OF_SCOPE = [{"text": text, "label": None} for text in ("sing a song", "tell jokes", "dance")]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A service without a worker: a training needs none."""
    with client_of(settings_in(tmp_path)) as client:
        yield client


def trained(client: TestClient, examples: list[dict[str, Any]] = EXAMPLES, **query: Any) -> dict[str, Any]:
    answer = client.put("/v1/classifiers/intents", json={"examples": examples}, params=query)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def classified(client: TestClient, *texts: str, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post("/v1/classify/sequence", json={"texts": texts, "classifier": "intents", **fields})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_a_training_reports_how_good_it_is(client: TestClient) -> None:
    body = trained(client)
    assert (body["name"], body["version"], body["is_active"], body["n_examples"]) == ("intents", 1, True, 18)
    assert body["labels"] == ["cards", "rates"]
    assert (body["model"], body["fingerprint"]) == ("word-hash", "word-hash-1")
    report = body["report"]
    assert (report["accuracy"], report["macro_f1"], report["n_folds"], report["confusions"]) == (1, 1, 5, [])
    assert report["labels"][0] == {"label": "cards", "n_examples": 9, "precision": 1, "recall": 1, "f1": 1}
    assert set(body["timings_ms"]) == {"encode", "fit", "total"}


def test_a_trained_classifier_classifies(client: TestClient) -> None:
    trained(client)
    first, second = classified(client, "where is my card", "which rate is it")
    assert (first["labels"][0]["label"], second["labels"][0]["label"]) == ("cards", "rates")
    assert sum(each["score"] for each in first["labels"]) == pytest.approx(1)
    assert first["labels"][0]["logit"] > first["labels"][1]["logit"]


def test_examples_without_a_label_set_the_border_of_scope(client: TestClient) -> None:
    body = trained(client, EXAMPLES + OUT_OF_SCOPE)
    assert body["report"]["n_out_of_scope"] == 3
    assert body["report"]["scope_auroc"] > 0.8
    inside, outside = classified(client, "find the card please", "sing jokes")
    assert (inside["out_of_scope"], outside["out_of_scope"]) == (False, True)
    assert inside["scope_score"] >= body["scope_threshold"] > outside["scope_score"]


def test_training_again_from_the_same_examples_changes_nothing(client: TestClient) -> None:
    first = trained(client)
    again = client.put("/v1/classifiers/intents", json={"examples": EXAMPLES[::-1]})
    assert again.status_code == 200
    assert again.json() | {"timings_ms": 0} == first | {"timings_ms": 0}
    assert len(client.get("/v1/classifiers/intents/versions").json()["versions"]) == 1


def test_other_examples_make_a_new_version_and_the_old_one_can_be_called_back(client: TestClient) -> None:
    trained(client)
    swapped = [{**each, "label": {"cards": "rates", "rates": "cards"}[each["label"]]} for each in EXAMPLES]
    assert trained(client, swapped)["version"] == 2
    assert classified(client, "the card")[0]["labels"][0]["label"] == "rates"
    assert classified(client, "the card", version=1)[0]["labels"][0]["label"] == "cards"
    back = client.put("/v1/classifiers/intents/active", json={"version": 1})
    assert (back.status_code, back.json()["version"], back.json()["is_active"]) == (200, 1, True)
    assert classified(client, "the card")[0]["labels"][0]["label"] == "cards"
    versions = client.get("/v1/classifiers/intents/versions").json()["versions"]
    assert [(each["version"], each["is_active"]) for each in versions] == [(2, False), (1, True)]


def test_a_text_may_have_several_labels(client: TestClient) -> None:
    examples = [
        {"text": f"{text} {end}", "labels": labels}
        for text, labels in (
            ("card", ["cards"]),
            ("rate", ["rates"]),
            ("card rate", ["cards", "rates"]),
            ("x", []),
        )
        for end in ("now", "please", "again", "here")
    ]
    body = trained(client, examples, multi_label="true")
    assert (body["multi_label"], body["report"]["n_out_of_scope"]) == (True, 0)
    both, none = classified(client, "card rate", "x")
    assert all(each["score"] > 0.5 for each in both["labels"])
    assert all(each["score"] < 0.5 for each in none["labels"])


def bodies() -> dict[str, tuple[str, str]]:
    """The same examples in every form."""
    every = [*EXAMPLES, *OUT_OF_SCOPE]
    table = [("text", "label"), *((each["text"], each["label"] or "") for each in every)]
    return {
        "json lines": ("application/x-ndjson", "\n".join(map(json.dumps, every)) + "\n\n"),
        "csv": ("text/csv", "\ufeff" + "\r\n".join(f'"{text}",{label}' for text, label in table)),
        "tsv": ("text/tab-separated-values", "\n".join(f"{label}\t{text}" for text, label in table)),
    }


@pytest.mark.parametrize("form", bodies())
def test_examples_may_come_as_a_file(client: TestClient, form: str) -> None:
    trained(client, EXAMPLES + OUT_OF_SCOPE)
    media_type, content = bodies()[form]
    answer = client.put(
        "/v1/classifiers/intents", content=content.encode(), headers={"Content-Type": media_type}
    )
    assert answer.status_code == 200, answer.text  # 200: the examples are those of the active version


def test_a_cell_may_hold_several_labels(client: TestClient) -> None:
    table = (
        "text,labels\n"
        + "a card,cards\n" * 1
        + "the card,cards\nthe rate,rates\na rate,rates\ncard rate,cards|rates"
    )
    answer = client.put(
        "/v1/classifiers/intents",
        params={"multi_label": "true"},
        content=table.encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 201, answer.text
    assert [each["n_examples"] for each in answer.json()["report"]["labels"]] == [3, 3]


@pytest.mark.parametrize(
    ("media_type", "content", "refusal", "message"),
    [
        ("text/csv", "a,b\nc,d", (400, "malformed-request"), "must name the columns"),
        ("text/csv", "", (400, "malformed-request"), "must name the columns"),
        ("text/csv", "text,label\nc", (400, "malformed-request"), "line 2 of the body has 1 columns"),
        ("text/csv", 'text,label\n"c" d,e', (400, "malformed-request"), "line 2 of the body"),
        ("text/csv", b"text,label\n\xff,x", (400, "malformed-request"), "not UTF-8"),
        (
            "application/x-ndjson",
            '{"text": "a"}\n{"text": NaN}',
            (400, "malformed-request"),
            "line 2 of the body",
        ),
        ("application/x-ndjson", '{"text": "a"}\n{"txt": "b"}', (422, "invalid-request"), "examples.1"),
        ("application/json", '{"examples": []}', (422, "bad-examples"), "at least two are needed"),
        (
            "application/json",
            '{"examples": [{"text": "a", "label": "x", "labels": []}]}',
            (422, "invalid-request"),
            "",
        ),
        (
            "application/json",
            '{"examples": [{"text": " ", "label": "x"}]}',
            (422, "blank-text"),
            "examples.0.text",
        ),
        ("application/json", "[]", (422, "invalid-request"), ""),
        ("text/plain", "a", (415, "unsupported-media-type"), "text/csv"),
    ],
)
def test_a_body_that_holds_no_examples_is_refused(
    client: TestClient, media_type: str, content: str | bytes, refusal: tuple[int, str], message: str
) -> None:
    answer = client.put("/v1/classifiers/intents", content=content, headers={"Content-Type": media_type})
    assert message in assert_problem(answer, *refusal)["detail"]
    assert client.get("/v1/classifiers").json() == {"classifiers": []}


def test_classifiers_are_listed_shown_and_deleted(client: TestClient) -> None:
    shown = trained(client)
    shown.pop("timings_ms")
    assert client.get("/v1/classifiers/intents").json() == shown
    (head,) = client.get("/v1/classifiers").json()["classifiers"]
    assert head == {key: value for key, value in shown.items() if key != "report"}
    assert client.delete("/v1/classifiers/intents").status_code == 204
    assert client.get("/v1/classifiers").json() == {"classifiers": []}


def test_what_is_not_there_is_not_found(client: TestClient) -> None:
    for answer in (
        client.get("/v1/classifiers/intents"),
        client.get("/v1/classifiers/intents/versions"),
        client.delete("/v1/classifiers/intents"),
        client.put("/v1/classifiers/intents/active", json={"version": 1}),
        client.post("/v1/classify/sequence", json={"texts": ["a"], "classifier": "intents"}),
    ):
        assert_problem(answer, 404, "classifier-not-found")
    trained(client)
    answer = client.put("/v1/classifiers/intents/active", json={"version": 2})
    assert "no version 2" in assert_problem(answer, 404, "classifier-not-found")["detail"]


def test_a_classifier_of_another_encoder_is_refused_until_trained_again(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        trained(client)
    with client_of(settings_in(tmp_path), embedder=WordHashEmbedder(fingerprint="other")) as client:
        answer = client.post("/v1/classify/sequence", json={"texts": ["a"], "classifier": "intents"})
        problem = assert_problem(answer, 409, "fingerprint-mismatch")
        assert "word-hash-1" in problem["detail"]
        assert "other" in problem["detail"]
        assert trained(client)["version"] == 2
        assert classified(client, "the card")[0]["labels"][0]["label"] == "cards"


def test_a_classifier_survives_a_restart(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        trained(client)
        before = classified(client, "the card")
    with client_of(settings_in(tmp_path)) as client:
        assert classified(client, "the card") == before


@pytest.mark.parametrize("name", ["Intents", "-a", "a%2Fb", "%F0%9F%98%80"])
def test_a_name_outside_the_pattern_is_refused(client: TestClient, name: str) -> None:
    answer = client.put(f"/v1/classifiers/{name}", json={"examples": EXAMPLES})
    problem = assert_problem(answer, 422, "invalid-request")
    assert problem["errors"][0]["location"] == ["path", "classifier"]
