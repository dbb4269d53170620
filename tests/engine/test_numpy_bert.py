"""BERT in NumPy, compared with transformers: embeddings, attention and heads."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch_file
from transformers import BertForPreTraining, BertModel

from app.engine.numpy_bert import NumpyBert
from app.engine.tensors import Tensors
from app.engine.tokenizer import Tokenizer
from app.errors import ModelUnavailable
from tests.engine.tiny_trained import write_tiny_published

TEXT, PAIR = "Where is Warsaw?", "Warsaw lies on the Vistula in east-central Poland."


def opened(folder: Path, **config: Any) -> NumpyBert:
    read = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return NumpyBert({**read, **config}, Tensors([folder / "model.safetensors"]))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, packaged_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("lens")
    return write_tiny_published(folder, "BertForPreTraining", tokenizer_from=packaged_folder)


@pytest.fixture(scope="module", params=["tiny", "packaged"])
def folder(request: pytest.FixtureRequest, tiny: Path, packaged_folder: Path) -> Path:
    return tiny if request.param == "tiny" else packaged_folder


def test_hidden_states_and_attention_are_those_of_transformers(folder: Path, tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(TEXT, PAIR)
    reference = BertModel.from_pretrained(folder, attn_implementation="eager")
    with torch.inference_mode():
        expected = reference(
            torch.tensor(pieces.ids[None].astype(np.int64)),
            token_type_ids=torch.tensor(pieces.segments[None].astype(np.int64)),
            output_attentions=True,
            output_hidden_states=True,
        )
    found = opened(folder).forward(pieces.ids, pieces.segments)
    np.testing.assert_allclose(found.hidden, expected.last_hidden_state[0], atol=2e-5)
    np.testing.assert_allclose(found.attention, torch.stack(expected.attentions)[:, 0], atol=1e-5)
    embedded = opened(folder).embed(pieces.ids, pieces.segments)
    np.testing.assert_allclose(embedded.output, expected.hidden_states[0][0], atol=1e-5)


def test_the_three_embeddings_are_rows_of_the_model_s_tables(folder: Path, tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(TEXT, PAIR)
    tables = BertModel.from_pretrained(folder).embeddings.state_dict()
    found = opened(folder).embed(pieces.ids, pieces.segments)
    assert np.array_equal(found.token, tables["word_embeddings.weight"][pieces.ids])
    assert np.array_equal(found.segment, tables["token_type_embeddings.weight"][pieces.segments])
    assert np.array_equal(found.position, tables["position_embeddings.weight"][: len(pieces)])


def test_heads_of_pretraining_are_those_of_transformers(tiny: Path, tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces(TEXT, PAIR)
    reference = BertForPreTraining.from_pretrained(tiny)
    with torch.inference_mode():
        expected = reference(
            torch.tensor(pieces.ids[None].astype(np.int64)),
            token_type_ids=torch.tensor(pieces.segments[None].astype(np.int64)),
        )
    bert = opened(tiny)
    hidden = bert.forward(pieces.ids, pieces.segments).hidden
    np.testing.assert_allclose(bert.token_logits(hidden), expected.prediction_logits[0], atol=1e-4)
    np.testing.assert_allclose(
        bert.next_sentence_logits(hidden), expected.seq_relationship_logits[0], atol=1e-5
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "roberta"}, "type bert, this one is of type roberta"),
        ({"position_embedding_type": "relative_key"}, "absolute position embeddings"),
        ({"hidden_act": "swish"}, "'swish' is not one of gelu"),
    ],
)
def test_another_architecture_is_refused_by_name(tiny: Path, config: dict[str, str], message: str) -> None:
    with pytest.raises(ModelUnavailable, match=message):
        opened(tiny, **config)


def test_a_missing_tensor_is_named(packaged_folder: Path) -> None:
    bert = opened(packaged_folder)
    assert not bert.has("cls.predictions.bias")
    with pytest.raises(ModelUnavailable, match=r"no cls\.predictions\.transform\.dense\.weight"):
        bert.token_logits(np.zeros((1, 384), dtype=np.float32))


def test_tensors_are_read_as_safetensors_wrote_them(tmp_path: Path) -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    save_file({"half": table.astype(np.float16), "odd": np.ones(3, np.int64), "full": table}, tmp_path / "a")
    save_torch_file(
        {"brain": torch.tensor(table).bfloat16(), "full": torch.tensor(2 * table)}, tmp_path / "b"
    )
    tensors = Tensors([tmp_path / "a", tmp_path / "b"])
    assert set(tensors) == {"half", "full", "brain"}
    assert np.array_equal(tensors["half"], table.astype(np.float16).astype(np.float32))
    assert np.array_equal(tensors["brain"], torch.tensor(table).bfloat16().float().numpy())
    assert np.array_equal(tensors["full"], 2 * table)
    assert np.array_equal(tensors.rows("brain", np.array([2, 0])), tensors["brain"][[2, 0]])


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x02\0\0\0\0\0\0\0{]", b"\x02\0\0\0\0\0\0\0[]"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelUnavailable, match=r"model\.safetensors is not a file of safetensors"):
        Tensors([tmp_path / "model.safetensors"])
