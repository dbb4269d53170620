"""/v1/tokenize and /v1/inspect"""

from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.api.inspection import MAX_ATTENTION_VALUES
from app.api.schemas.inspection import MAX_INSPECTED_CHARS, MAX_TEXTS
from tests.api.stand_up import assert_problem

LONG = "word " * 300


def post(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_tokenizing_shows_every_piece_with_its_place(client: TestClient) -> None:
    (result,) = post(client, "tokenize", texts=["😀 Élan"])["results"]
    assert [piece["token"] for piece in result["pieces"]] == ["[CLS]", "[UNK]", "el", "##an", "[SEP]"]
    assert result["pieces"][3] == {
        "token": "##an",
        "id": 2319,
        "text_index": 0,
        "start": 4,
        "end": 6,
        "start_utf16": 5,
        "end_utf16": 7,
        "word": 1,
        "special": False,
        "unknown": False,
        "segment": 0,
        "position": 3,
    }
    assert (
        result["pieces"][0] | {"token": "[CLS]", "special": True, "word": None, "text_index": None}
        == (result["pieces"][0])
    )
    assert result["unknown_share"] == 0.3333
    assert result["pieces_per_word"] == 1.5
    assert result["normalized"] == ["😀 elan"]


def test_a_pair_has_two_segments_and_three_special_tokens(client: TestClient) -> None:
    (result,) = post(client, "tokenize", texts=["a b"], pairs=["c"])["results"]
    assert [piece["segment"] for piece in result["pieces"]] == [0, 0, 0, 0, 1, 1]
    assert [piece["text_index"] for piece in result["pieces"]] == [None, 0, 0, None, 1, None]


def test_tokenizing_nothing_gives_nothing(client: TestClient) -> None:
    assert post(client, "tokenize", texts=[])["results"] == []


def test_an_empty_text_has_special_tokens_alone(client: TestClient) -> None:
    (result,) = post(client, "tokenize", texts=[""])["results"]
    assert (result["n_tokens"], result["unknown_share"], result["pieces_per_word"]) == (2, 0, 0)


def test_tokenizing_cuts_nothing_and_says_what_the_model_would_cut(client: TestClient) -> None:
    answer = post(client, "tokenize", texts=[LONG, "short"])
    assert [(r["n_tokens"], r["exceeds_max_tokens"]) for r in answer["results"]] == [(302, True), (3, False)]
    assert answer["max_tokens"] == 256


def test_names_of_special_tokens_in_a_text_are_text(client: TestClient) -> None:
    (result,) = post(client, "tokenize", texts=["[SEP] [MASK]"])["results"]
    assert [p["token"] for p in result["pieces"] if p["special"]] == ["[CLS]", "[SEP]"]


@pytest.mark.parametrize(
    "text", ["a\0b", "\ufeffx", "\u202eabc\u202c", "👩‍👩‍👧", "e\u0301", "x" * 100_000, "\r\n\t"]
)
def test_odd_texts_are_tokenized_with_offsets_that_slice(client: TestClient, text: str) -> None:
    (result,) = post(client, "tokenize", texts=[text])["results"]
    units = text.encode("utf-16-le")
    for piece in result["pieces"]:
        sliced = units[2 * piece["start_utf16"] : 2 * piece["end_utf16"]].decode("utf-16-le")
        assert sliced == text[piece["start"] : piece["end"]] or piece["special"]


@pytest.mark.parametrize(
    ("body", "where", "message"),
    [
        ({"texts": ["a"] * (MAX_TEXTS + 1)}, ["body", "texts"], "at most 1000"),
        ({"texts": ["a"], "pairs": []}, ["body"], "pairs has 0 texts and texts 1"),
        ({"texts": ["a" * MAX_INSPECTED_CHARS, "b"]}, ["body"], "100001 characters, at most 100000"),
        ({"texts": [1]}, ["body", "texts", 0], "string"),
        ({"texts": ["a"], "model": "gpt"}, ["body", "model"], "embedder"),
    ],
)
def test_what_cannot_be_tokenized_is_refused_by_place(
    client: TestClient, body: dict[str, Any], where: list[object], message: str
) -> None:
    problem = assert_problem(client.post("/v1/tokenize", json=body), 422, "invalid-request")
    assert problem["errors"][0]["location"] == where
    assert message in problem["errors"][0]["message"]


def test_embeddings_are_the_norms_of_the_vectors(client: TestClient) -> None:
    answer = post(client, "inspect/embeddings", text="The bank", pair="river", values=True)
    assert answer["dimensions"] == 384
    for norms, vectors in zip(answer["norms"], answer["values"], strict=True):
        for part in ("token", "segment", "position", "output"):
            assert np.linalg.norm(vectors[part]) == pytest.approx(norms[part], abs=1e-4)
    assert len(answer["norms"]) == len(answer["pieces"]) == 6


def test_embeddings_add_up_to_a_standardised_sum(client: TestClient) -> None:
    """Layer norm is affine in (sum - mean) / deviation, so two tokens' outputs share slope and shift."""
    values = post(client, "inspect/embeddings", text="the the", values=True)["values"]
    sums = [np.array(v["token"]) + v["segment"] + v["position"] for v in values]
    standard = [(s - s.mean()) / s.std() for s in sums]
    outputs = [np.array(v["output"]) for v in values]
    slope = (outputs[1] - outputs[2]) / (standard[1] - standard[2])
    shift = outputs[1] - slope * standard[1]
    is_clear = np.abs(standard[1] - standard[2]) > 0.2
    assert np.allclose((slope * standard[0] + shift)[is_clear], outputs[0][is_clear], atol=1e-2)


def test_embeddings_leave_the_vectors_out_unless_asked(client: TestClient) -> None:
    assert post(client, "inspect/embeddings", text="a")["values"] is None


def test_attention_has_a_share_for_every_layer_head_and_pair_of_pieces(client: TestClient) -> None:
    answer = post(client, "inspect/attention", text="The cat", pair="sat")
    shares = np.array(answer["attention"])
    assert shares.shape == (6, 12, 6, 6)
    assert np.allclose(shares.sum(axis=-1), 1, atol=1e-4)
    assert (answer["layers"], answer["heads"]) == ([*range(6)], [*range(12)])


def test_chosen_layers_and_heads_are_those_of_the_whole(client: TestClient) -> None:
    whole = np.array(post(client, "inspect/attention", text="The cat sat")["attention"])
    some = post(client, "inspect/attention", text="The cat sat", layers=[5, 0], heads=[3])
    assert np.array_equal(np.array(some["attention"]), whole[[5, 0]][:, [3]])
    mean = post(client, "inspect/attention", text="The cat sat", average_heads=True)
    assert np.allclose(np.array(mean["attention"])[:, 0], whole.mean(axis=1), atol=1e-5)


@pytest.mark.parametrize("path", ["inspect/embeddings", "inspect/attention"])
def test_a_long_text_is_cut_and_reported_or_refused(client: TestClient, path: str) -> None:
    extra = {"layers": [0], "average_heads": True} if path.endswith("attention") else {}
    answer = post(client, path, text=LONG, **extra)
    assert (answer["n_tokens"], answer["truncated"], len(answer["pieces"])) == (302, True, 256)
    body = {"text": LONG, "truncate": False, **extra}
    problem = assert_problem(client.post(f"/v1/{path}", json=body), 422, "text-too-long")
    assert (problem["n_tokens"], problem["max_tokens"]) == (302, 256)


def test_attention_of_many_pieces_is_refused_with_ways_out(client: TestClient) -> None:
    answer = client.post("/v1/inspect/attention", json={"text": LONG})
    problem = assert_problem(answer, 422, "invalid-request")
    assert str(MAX_ATTENTION_VALUES) in problem["detail"]
    assert "average_heads" in problem["detail"]


@pytest.mark.parametrize(
    ("field", "number", "allowed"),
    [("layers", 6, "0 to 5"), ("heads", 12, "0 to 11"), ("layers", -1, "0 to 5")],
)
def test_a_layer_or_head_that_is_not_there_is_refused(
    client: TestClient, field: str, number: int, allowed: str
) -> None:
    answer = client.post("/v1/inspect/attention", json={"text": "a", field: [number]})
    problem = assert_problem(answer, 422, "invalid-request")
    assert problem["errors"] == [
        {"location": ["body", field], "message": f"{number} is none of this model's {field}: {allowed}"}
    ]


def test_limits_of_texts_are_listed_with_the_others(client: TestClient) -> None:
    limits = client.get("/v1/models").json()["limits"]
    assert (limits["max_texts"], limits["max_inspected_chars"]) == (MAX_TEXTS, MAX_INSPECTED_CHARS)
