"""What the quantising process is asked to do; apart from it, so that asking does not import torch."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Precision = Literal["int8", "float32"]


@dataclass(frozen=True, slots=True)
class QuantisationRequest:
    head: str
    """Name or path of a model with a head; empty for a bi-encoder."""
    models: str
    """Folder in which trained models are looked for."""
    transformer: str
    """Folder of a bi-encoder's transformer."""
    pooling: Literal["mean", "cls"]
    """Of a bi-encoder."""
    full_precision: Sequence[str]
    """Patterns of names of network parts that stay as they are."""
    precision: Precision
    """float32: nothing is quantised."""
    sequences: Sequence[Sequence[Sequence[int]]]
    """For calibration: of each input its token ids with special tokens and, if the network reads them, its
    segment ids."""
    held_out: Sequence[Sequence[Sequence[int]]]
    """The same, for the comparison afterwards."""
    network: str
    """File to write; the weights go beside it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "QuantisationRequest":
        fields: dict[str, Any] = json.loads(text)
        return cls(**fields)
