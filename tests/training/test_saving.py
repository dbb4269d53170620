"""A trained model's folder holds what differs from its base, and loads as it was."""

import json
from pathlib import Path

import pytest
import torch

from app.engine.model_files import BiEncoderFiles, find_bi_encoder
from app.engine.torch_models import load_module, new_module
from app.engine.trained_models import find_trained_model, is_trained_model
from app.errors import ModelUnavailable, TrainingFailed
from indexer.training.saving import save_trained_model
from tests.engine.tiny_model import write_tiny_model

ARCHITECTURES = {
    "reader-reranker": "JointModel",
    "sequence": "BertForSequenceClassification",
    "token": "BertForTokenClassification",
    "lens": "BertForPreTraining",
}


@pytest.fixture
def base(tmp_path: Path) -> BiEncoderFiles:
    packaged = find_bi_encoder("sentence-transformers/all-MiniLM-L6-v2").transformer
    return find_bi_encoder(str(write_tiny_model(tmp_path / "base", tokenizer_from=packaged)))


def trained(task: str, base: BiEncoderFiles, folder: Path) -> torch.nn.Module:
    """A model whose last layer was moved as training would, saved."""
    labels = ("no", "maybe", "yes") if task in ("sequence", "token") else ()
    module = new_module(ARCHITECTURES[task], base, labels=labels).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "layer.1.output.dense" in name:
                parameter.add_(0.25)
    save_trained_model(
        module,
        folder,
        task=task,  # type: ignore[arg-type]
        architecture=ARCHITECTURES[task],  # type: ignore[arg-type]
        base=base,
        max_tokens=40,
        labels=labels,
        calibration={"temperature": 1.5},
    )
    return module


@pytest.mark.parametrize("task", ARCHITECTURES)
def test_a_saved_model_answers_as_before_within_half_precision(
    task: str, base: BiEncoderFiles, tmp_path: Path
) -> None:
    module = trained(task, base, tmp_path / "models" / "m")
    files = find_trained_model("m", models=tmp_path / "models")
    loaded = load_module(files)
    ids = torch.tensor([[101, 2054, 102, 7592, 2088, 102]])
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.tensor([[0, 0, 0, 1, 1, 1]]),
    }
    with torch.inference_mode():
        before, after = module(**inputs), loaded(**inputs)
    for one, other in zip(outputs(before), outputs(after), strict=True):
        assert torch.allclose(one, other, atol=2e-2)


def outputs(result: object) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else list(result.to_tuple())  # type: ignore[attr-defined]


def test_only_what_differs_from_the_base_is_stored(base: BiEncoderFiles, tmp_path: Path) -> None:
    from safetensors import safe_open  # noqa: PLC0415

    trained("reader-reranker", base, tmp_path / "models" / "m")
    with safe_open(tmp_path / "models" / "m" / "model.safetensors", framework="pt") as stored:
        names = set(stored.keys())
        dtypes = {stored.get_tensor(name).dtype for name in names}
    assert {n for n in names if n.startswith("encoder.")} == {
        "encoder.encoder.layer.1.output.dense.weight",
        "encoder.encoder.layer.1.output.dense.bias",
    }
    assert {"relevance.weight", "spans.weight", "relevance_dense.weight"} <= names
    assert dtypes == {torch.float16}


def test_what_its_files_say_is_known_without_torch(base: BiEncoderFiles, tmp_path: Path) -> None:
    trained("token", base, tmp_path / "models" / "m")
    files = find_trained_model("m", models=tmp_path / "models")
    assert (files.task, files.labels, files.max_tokens) == ("token", ("no", "maybe", "yes"), 40)
    assert files.calibration == {"temperature": 1.5}
    assert files.base.weights_digest == base.weights_digest
    assert is_trained_model("m", models=tmp_path / "models")
    assert not is_trained_model("n", models=tmp_path / "models")


def test_altered_weights_are_refused(base: BiEncoderFiles, tmp_path: Path) -> None:
    trained("token", base, tmp_path / "models" / "m")
    weights = tmp_path / "models" / "m" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelUnavailable, match="was altered"):
        find_trained_model("m", models=tmp_path / "models")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", 2, "update Bifocal"),
        ("task", "translation", "allowed are reader-reranker"),
        ("architecture", "GPT2LMHeadModel", "allowed are JointModel"),
        ("base_sha256", "0" * 64, "was trained on"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    base: BiEncoderFiles, tmp_path: Path, field: str, value: object, message: str
) -> None:
    trained("token", base, tmp_path / "models" / "m")
    file = tmp_path / "models" / "m" / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(ModelUnavailable, match=message):
        find_trained_model("m", models=tmp_path / "models")


def test_an_unknown_name_says_which_are_known(base: BiEncoderFiles, tmp_path: Path) -> None:
    trained("token", base, tmp_path / "models" / "m")
    with pytest.raises(ModelUnavailable, match=r"no trained model 'n'.*\(m\)"):
        find_trained_model("n", models=tmp_path / "models")


def test_weights_of_another_architecture_are_refused(base: BiEncoderFiles, tmp_path: Path) -> None:
    trained("token", base, tmp_path / "models" / "m")
    file = tmp_path / "models" / "m" / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "architecture": "JointModel"}))
    with pytest.raises(ModelUnavailable, match="does not fit JointModel"):
        load_module(find_trained_model("m", models=tmp_path / "models"))


def test_weights_that_are_not_finite_are_not_saved(base: BiEncoderFiles, tmp_path: Path) -> None:
    module = new_module("JointModel", base)
    with torch.no_grad():
        module.get_parameter("spans.bias")[0] = torch.nan
    with pytest.raises(TrainingFailed, match=r"spans\.bias are not finite"):
        save_trained_model(
            module,
            tmp_path / "m",
            task="reader-reranker",
            architecture="JointModel",
            base=base,
            max_tokens=40,
        )
    assert not (tmp_path / "m").exists()
