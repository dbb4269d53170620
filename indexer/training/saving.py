"""Trained models as folders that `app.engine.trained_models` finds."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from app.engine.model_files import BiEncoderFiles, file_digest
from app.engine.torch_models import is_of_head, new_module
from app.engine.trained_models import DESCRIPTION, FORMAT, WEIGHTS, Architecture, Task
from app.errors import TrainingFailed


def save_trained_model(
    module: torch.nn.Module,
    folder: Path,
    *,
    task: Task,
    architecture: Architecture,
    base: BiEncoderFiles,
    max_tokens: int,
    labels: Sequence[str] = (),
    reads_capitals: bool = False,
    calibration: Mapping[str, Any] | None = None,
    card: str = "",
) -> None:
    """Write weights, description and model card; the folder, named after the model, appears complete.

    Weights are kept in float16, and only where they differ from the base.

    Args:
        card: Markdown of the model card; may be written later.

    Raises:
        TrainingFailed: a weight is not finite, or the disk refuses.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        save_file(changed_tensors(module, architecture, base, labels=labels), part / WEIGHTS)
        described = {
            "format": FORMAT,
            "name": folder.name,
            "task": task,
            "architecture": architecture,
            "base": base.name,
            "base_sha256": base.weights_digest,
            "weights_sha256": file_digest(part / WEIGHTS),
            "max_tokens": max_tokens,
            "labels": list(labels),
            "reads_capitals": reads_capitals,
            "calibration": calibration,
        }
        (part / DESCRIPTION).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        if card:
            (part / "README.md").write_text(card, encoding="utf-8")
        (part / WEIGHTS).chmod(0o644)  # safetensors makes files that nobody else can read
        if folder.exists():
            shutil.rmtree(folder)
        part.replace(folder)
    except OSError as error:
        raise TrainingFailed(f"the trained model cannot be written to {folder}: {error}") from error


def changed_tensors(
    module: torch.nn.Module, architecture: Architecture, base: BiEncoderFiles, *, labels: Sequence[str] = ()
) -> dict[str, torch.Tensor]:
    """Parameters of the heads, and those of the encoder that are not the base's, by name and in float16.

    Parameters that are shared under two names, as BERT's tied embeddings are, count once.
    """
    untrained = dict(new_module(architecture, base, labels=labels).named_parameters())
    changed = {}
    for name, parameter in module.named_parameters():
        if not torch.isfinite(parameter).all():
            raise TrainingFailed(f"the weights {name} are not finite: the training diverged")
        if is_of_head(name) or not torch.equal(parameter.detach(), untrained[name].detach()):
            changed[name] = parameter.detach().to(torch.float16).contiguous()
    return changed
