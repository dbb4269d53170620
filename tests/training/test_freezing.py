from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from app.errors import InvalidInput
from indexer.training.freezing import freeze, trainable_parameters
from indexer.training.optimiser import adamw
from tests.training.tiny_bases import ARCHITECTURES

LAYERED = [name for name in ARCHITECTURES if name != "albert"]


def classifier(folder: Path) -> PreTrainedModel:
    module: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
    return module


def learning(module: PreTrainedModel) -> set[str]:
    return {name for name, parameter in module.named_parameters() if parameter.requires_grad}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_freezing_every_parameter_learns(bases: dict[str, Path], architecture: str) -> None:
    module = classifier(bases[architecture])
    freeze(module.base_model, "none")
    assert trainable_parameters(module) == sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_frozen_encoder_leaves_the_head_and_the_pooling_layer(
    bases: dict[str, Path], architecture: str
) -> None:
    module = classifier(bases[architecture])
    freeze(module.base_model, "encoder")
    prefix = f"{module.base_model_prefix}."
    names = learning(module)
    assert any(not name.startswith(prefix) for name in names)
    assert {n for n in names if n.startswith(prefix)} <= {
        f"{prefix}pooler.dense.weight",
        f"{prefix}pooler.dense.bias",
        f"{prefix}pooler.weight",
        f"{prefix}pooler.bias",
    }


@pytest.mark.parametrize("architecture", LAYERED)
def test_the_last_layers_learn_and_what_is_below_does_not(bases: dict[str, Path], architecture: str) -> None:
    module = classifier(bases[architecture])
    freeze(module.base_model, "all-but-last-1")
    names = learning(module)
    assert any("layer.2." in name for name in names)
    assert not any("layer.0." in name or "layer.1." in name or "embeddings" in name for name in names)


def test_albert_cannot_freeze_some_of_its_layers(bases: dict[str, Path]) -> None:
    with pytest.raises(InvalidInput, match=r"share their weights.*allowed are none and encoder"):
        freeze(classifier(bases["albert"]).base_model, "all-but-last-1")


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("all-but-last-4", "has 3 layers"),
        ("last-two", "allowed are none, encoder, or all-but-last-N"),
        ("all-but-last--1", "is not known"),
    ],
)
def test_modes_that_mean_nothing_are_refused(bases: dict[str, Path], mode: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        freeze(classifier(bases["bert"]).base_model, mode)


def test_heads_learn_faster_and_biases_and_norms_do_not_decay(bases: dict[str, Path]) -> None:
    module = classifier(bases["bert"])
    optimizer = adamw(module, encoder=module.base_model, learning_rate=1e-3, head_rate=5.0, weight_decay=0.1)
    of = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    head, layer = module.get_parameter("classifier.weight"), "bert.encoder.layer.0.output."
    assert of[id(head)]["lr"] == pytest.approx(5e-3)
    assert of[id(module.get_parameter("bert.pooler.dense.weight"))]["lr"] == pytest.approx(5e-3)
    assert of[id(module.get_parameter(f"{layer}dense.weight"))]["lr"] == pytest.approx(1e-3)
    assert of[id(module.get_parameter(f"{layer}dense.weight"))]["weight_decay"] == 0.1
    assert of[id(module.get_parameter(f"{layer}dense.bias"))]["weight_decay"] == 0.0
    assert of[id(module.get_parameter(f"{layer}LayerNorm.weight"))]["weight_decay"] == 0.0
