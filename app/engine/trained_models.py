"""Models that this project trained: where their files are and what they say. Imports no torch.

A folder holds `model.json`, `model.safetensors` and a model card. Only tensors that differ from the base
model are stored, in half precision; the others come from the base, whose digest must be the one it was
trained on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from app.engine.model_files import BiEncoderFiles, file_digest, find_bi_encoder
from app.errors import ModelUnavailable

FORMAT = 1
DESCRIPTION = "model.json"
WEIGHTS = "model.safetensors"

Task = Literal["reader-reranker", "sequence", "token", "lens"]
Architecture = Literal[
    "JointModel", "BertForSequenceClassification", "BertForTokenClassification", "BertForPreTraining"
]


@dataclass(frozen=True, slots=True)
class TrainedModelFiles:
    """A trained model as its files describe it."""

    name: str
    folder: Path
    task: Task
    architecture: Architecture
    base: BiEncoderFiles
    """Whose tokenizer it uses, and whose weights it shares."""
    weights_digest: str
    max_tokens: int
    """Of an input, special tokens included."""
    labels: Sequence[str]
    """In the order of the outputs; empty where there are no classes."""
    reads_capitals: bool
    """Whether segment ids tell it what has a capital letter."""
    calibration: Mapping[str, Any]
    """Numbers that turn logits into probabilities and ranks, fitted after training."""

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS


def find_trained_model(name: str, *, models: Path, offline: bool = True) -> TrainedModelFiles:
    """Find a trained model by its name in the folder `models`, or by the path of its own folder.

    Reading all of its weights, and of its base, for their digests is part of it.

    Raises:
        ModelUnavailable: not there, incomplete, altered, or trained on another base.
    """
    folder = _folder(name, models)
    described = _description(folder)
    digest = _weights_digest(folder)
    if digest != described["weights_sha256"]:
        raise ModelUnavailable(
            f"{folder / WEIGHTS} was altered: its SHA-256 is {digest}, {DESCRIPTION} says"
            f" {described['weights_sha256']}"
        )
    base = find_bi_encoder(described["base"], offline=offline)
    if base.weights_digest != described["base_sha256"]:
        raise ModelUnavailable(
            f"{folder} was trained on a {described['base']} with the digest {described['base_sha256'][:12]},"
            f" the one on this machine has {base.weights_digest[:12]}"
        )
    return TrainedModelFiles(
        name=described["name"],
        folder=folder,
        task=described["task"],
        architecture=described["architecture"],
        base=base,
        weights_digest=digest,
        max_tokens=int(described["max_tokens"]),
        labels=tuple(described.get("labels") or ()),
        reads_capitals=bool(described.get("reads_capitals")),
        calibration=described.get("calibration") or {},
    )


def is_trained_model(name: str, *, models: Path) -> bool:
    """Whether the name or path leads to a folder with a `model.json`."""
    return (Path(name).expanduser() / DESCRIPTION).is_file() or (models / name / DESCRIPTION).is_file()


def _folder(name: str, models: Path) -> Path:
    for folder in (Path(name).expanduser(), models / name):
        if (folder / DESCRIPTION).is_file():
            return folder.resolve()
    known = sorted(file.parent.name for file in models.glob(f"*/{DESCRIPTION}"))
    raise ModelUnavailable(
        f"no trained model {name!r}: neither a folder with {DESCRIPTION} nor one of those in {models}"
        f" ({', '.join(known) or 'none'})"
    )


def _description(folder: Path) -> dict[str, Any]:
    file = folder / DESCRIPTION
    try:
        described: dict[str, Any] = json.loads(file.read_bytes())
        if described["format"] != FORMAT:
            raise ModelUnavailable(
                f"{file} has format {described['format']}, this version reads {FORMAT}: update Bifocal"
            )
        missing = {"name", "base", "base_sha256", "weights_sha256", "max_tokens"} - described.keys()
        if missing:
            raise ModelUnavailable(f"{file} lacks {', '.join(sorted(missing))}")
        for field, allowed in (("task", get_args(Task)), ("architecture", get_args(Architecture))):
            if described.get(field) not in allowed:
                raise ModelUnavailable(
                    f"{file}: {field} is {described.get(field)!r}, allowed are {', '.join(allowed)}"
                )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(f"{file} is not the description of a model: {error!r}") from error
    return described


def _weights_digest(folder: Path) -> str:
    try:
        return file_digest(folder / WEIGHTS)
    except OSError as error:
        raise ModelUnavailable(f"{folder / WEIGHTS} cannot be read: {error}") from error
