"""Trained models as modules of PyTorch. Importing this module imports torch and transformers."""

from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file

from app.engine.joint_network import JointModel
from app.engine.model_files import BiEncoderFiles
from app.engine.quiet_transformers import quiet
from app.engine.trained_models import TrainedModelFiles
from app.errors import ModelUnavailable


def load_encoder(base: BiEncoderFiles, **options: Any) -> torch.nn.Module:
    """The base encoder in float32, without BERT's pooling layer.

    Args:
        options: of the model's configuration, such as `attention_probs_dropout_prob`.
    """
    quiet()
    encoder: torch.nn.Module = transformers.AutoModel.from_pretrained(
        base.transformer, add_pooling_layer=False, **_loading(), **options
    )
    return encoder


def load_module(files: TrainedModelFiles, **options: Any) -> torch.nn.Module:
    """The whole model in float32, in evaluation mode: the base with the stored tensors laid over it.

    Raises:
        ModelUnavailable: the stored tensors do not fit the architecture.
    """
    module = new_module(files.architecture, files.base, labels=files.labels, **options)
    try:
        stored = load_file(files.weights)
        result = module.load_state_dict({k: v.float() for k, v in stored.items()}, strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise ModelUnavailable(f"{files.weights} does not fit {files.architecture}: {error}") from error
    lacking = {name for name, _ in module.named_parameters() if is_of_head(name)} - stored.keys()
    if lacking or result.unexpected_keys:
        raise ModelUnavailable(
            f"{files.weights} does not fit {files.architecture}: it lacks {sorted(lacking) or 'nothing'}, and"
            f" {sorted(result.unexpected_keys) or 'nothing'} in it is not known"
        )
    return module.eval()


def is_of_head(parameter: str) -> bool:
    """Whether a parameter of this name was added on top of the base encoder."""
    return not parameter.startswith(("encoder.", "bert."))


def new_module(
    architecture: str, base: BiEncoderFiles, *, labels: Any = (), **options: Any
) -> torch.nn.Module:
    """The base with untrained heads."""
    if architecture == "JointModel":
        return JointModel(load_encoder(base, **options), dimensions=base.dimensions)
    if labels:
        options["id2label"] = dict(enumerate(labels))
        options["label2id"] = {label: i for i, label in enumerate(labels)}
    quiet()
    module: torch.nn.Module = getattr(transformers, architecture).from_pretrained(
        base.transformer, **_loading(), **options
    )
    return module


def _loading() -> dict[str, Any]:
    return {
        "local_files_only": True,
        "use_safetensors": True,
        "trust_remote_code": False,
        "dtype": torch.float32,
    }
