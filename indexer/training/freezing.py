"""Which parameters learn: all, the last layers, or the head alone."""

import re
from collections.abc import Iterator, Sequence

import torch

from app.errors import InvalidInput

LAYERS = ("encoder.layer", "transformer.layer", "layer")
"""Where architectures keep their layers: BERT, RoBERTa, MiniLM, MPNet, ELECTRA; DistilBERT; others."""
SHARED_LAYERS = "encoder.albert_layer_groups"
MODES = "none, encoder, or all-but-last-N such as all-but-last-2"


def freeze(encoder: torch.nn.Module, mode: str) -> None:
    """Switch off the gradients of a part of the encoder, whose parameters all learn before.

    A pooling layer is no part of what is frozen: like the layers around the encoder it belongs to the head.

    Args:
        mode: "none" trains everything; "encoder" trains only what is not the encoder; "all-but-last-N"
            trains its last N layers, too, and so freezes the embeddings.

    Raises:
        InvalidInput: another mode, more layers than there are, or an encoder whose layers are one (ALBERT).
    """
    if mode == "none":
        return
    found = re.fullmatch(r"all-but-last-(\d+)", mode)
    if mode != "encoder" and found is None:
        raise InvalidInput(f"--freeze {mode!r} is not known; allowed are {MODES}")
    n_trained = int(found[1]) if found else 0
    layers = _layers(encoder)
    if n_trained and layers is None:
        raise InvalidInput(
            f"--freeze {mode}: the layers of this encoder share their weights, so that they learn together "
            "or not at all; allowed are none and encoder"
        )
    if layers is not None and n_trained > len(layers):
        raise InvalidInput(f"--freeze {mode}: the encoder has {len(layers)} layers")
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    for learning in _learning(encoder, layers, n_trained):
        for parameter in learning.parameters():
            parameter.requires_grad = True


def trainable_parameters(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def _learning(
    encoder: torch.nn.Module, layers: Sequence[torch.nn.Module] | None, n_trained: int
) -> Iterator[torch.nn.Module]:
    pooler = getattr(encoder, "pooler", None)
    if pooler is not None:
        yield pooler
    if layers is not None and n_trained:
        yield from layers[-n_trained:]


def _layers(encoder: torch.nn.Module) -> Sequence[torch.nn.Module] | None:
    """None where the layers share their weights."""
    for path in LAYERS:
        try:
            found = encoder.get_submodule(path)
        except AttributeError:
            continue
        if isinstance(found, torch.nn.ModuleList):
            return list(found)
    try:
        encoder.get_submodule(SHARED_LAYERS)
    except AttributeError as error:
        raise InvalidInput(
            f"--freeze: no layers were found in {type(encoder).__name__}; allowed for it is none"
        ) from error
    return None
