"""Models with a head, for any role but the bi-encoder: where their files are and what they say.

Either a model that this project trained (a folder with `model.json`), or a Hugging Face model: a folder, or a
name out of the local cache, with `config.json`, `tokenizer.json` and safetensors. What its architecture reads
and gives is recognised here, at load, and never guessed later. Imports no torch.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.engine.model_files import checked_weights_digest, find_folder, read_json, token_limit
from app.engine.runner import Output
from app.engine.trained_models import TrainedModelFiles, find_trained_model, is_trained_model
from app.errors import ModelUnavailable
from app.settings import Settings

OUTPUTS: Mapping[str, Sequence[Output]] = {
    "JointModel": (Output("relevance"), Output("start", (1,)), Output("end", (1,))),
    "ForSequenceClassification": (Output("logits"),),
    "ForTokenClassification": (Output("logits", (1,)),),
    "ForQuestionAnswering": (Output("start", (1,)), Output("end", (1,))),
    "ForPreTraining": (Output("token_logits", (1,)), Output("next_logits")),
    "ForMaskedLM": (Output("token_logits", (1,)),),
}
"""By the end of an architecture's name: what its network gives, in order."""


@dataclass(frozen=True, slots=True)
class HeadFiles:
    """A model with a head as its files describe it."""

    name: str
    source: TrainedModelFiles | Path
    """What `app.engine.torch_heads` loads; a path is a folder in Hugging Face layout."""
    architecture: str
    digest: str
    """Of all its weights, those of its base included."""
    tokenizer: Path
    """Its tokenizer.json."""
    max_tokens: int
    """Of one input, special tokens included."""
    pad_id: int
    has_segments: bool
    """Whether it reads segment ids."""
    labels: Sequence[str]
    is_iob2: bool
    """Whether its labels are tags of which I-X never begins an entity; of published models nobody knows."""
    reads_capitals: bool
    """Whether segment ids tell it what has a capital letter; see `app.engine.capitals`."""
    config: Mapping[str, Any]
    """Of a Hugging Face model; empty for one of ours."""
    calibration: Mapping[str, Any]
    """Numbers that turn logits into probabilities and ranks, fitted after training; may be empty."""

    @property
    def folder(self) -> Path:
        return self.source if isinstance(self.source, Path) else self.source.folder

    @property
    def full_precision(self) -> Sequence[str]:
        """Patterns of parts of the network that are not quantised, because int8 costs them too much."""
        return tuple(self.calibration.get("full_precision") or ())

    @property
    def outputs(self) -> Sequence[Output]:
        return outputs_of(self.architecture)

    @property
    def fingerprint(self) -> str:
        parts = [self.digest, self.architecture, self.max_tokens, dict(self.calibration)]
        parts += ["capitals"] if self.reads_capitals else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def tokenizer_definition(self) -> bytes:
        return self.tokenizer.read_bytes()


def find_head(name: str, settings: Settings) -> HeadFiles:
    """Find a model by the name or path that a setting has for it.

    Reading all of its weights for their digest is part of it.

    Raises:
        ModelUnavailable: not on this machine, incomplete, altered, or of a kind that is not supported.
    """
    if is_trained_model(name, models=settings.models):
        return _trained(find_trained_model(name, models=settings.models, offline=settings.offline))
    return _published(name, find_folder(name, offline=settings.offline))


def outputs_of(architecture: str) -> Sequence[Output]:
    """Raises ModelUnavailable for an architecture that is not supported."""
    for ending, outputs in OUTPUTS.items():
        if architecture.endswith(ending):
            return outputs
    raise ModelUnavailable(
        f"models of the architecture {architecture} are not supported; supported are {', '.join(OUTPUTS)}"
    )


def _trained(files: TrainedModelFiles) -> HeadFiles:
    digest = hashlib.sha256((files.weights_digest + files.base.weights_digest).encode()).hexdigest()
    return HeadFiles(
        name=files.name,
        source=files,
        architecture=files.architecture,
        digest=digest,
        tokenizer=files.base.transformer / "tokenizer.json",
        max_tokens=files.max_tokens,
        pad_id=files.base.pad_id,
        has_segments=True,
        labels=files.labels,
        is_iob2=files.task == "token",
        reads_capitals=files.reads_capitals,
        config={},
        calibration=files.calibration,
    )


def _published(name: str, folder: Path) -> HeadFiles:
    config = read_json(folder / "config.json")
    if "auto_map" in config:
        raise ModelUnavailable(f"{folder}: the model needs code of its own, which is never run")
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise ModelUnavailable(f"{tokenizer} is missing; save the model again with a fast tokenizer")
    architectures = config.get("architectures") or ["none"]
    outputs_of(architectures[0])
    return HeadFiles(
        name=name,
        source=folder,
        architecture=architectures[0],
        digest=checked_weights_digest(name, folder),
        tokenizer=tokenizer,
        max_tokens=token_limit(folder, config),
        pad_id=int(config.get("pad_token_id") or 0),
        has_segments=int(config.get("type_vocab_size") or 0) > 1,
        labels=_labels(architectures[0], config),
        is_iob2=bool(config.get("is_iob2")),
        reads_capitals=bool(config.get("reads_capitals")),
        config=config,
        calibration={},
    )


def _labels(architecture: str, config: Mapping[str, Any]) -> Sequence[str]:
    """In the order of the outputs. Two that have no names of their own are not written into a config.json."""
    if not architecture.endswith("Classification"):
        return ()
    named: Mapping[str, str] = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return tuple(named[key] for key in sorted(named, key=int))
