"""What the quantising process is asked to do; apart from it, so that asking does not import torch."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class QuantisationRequest:
    transformer: str
    """Folder of the transformer."""
    pooling: Literal["mean", "cls"]
    sequences: Sequence[Sequence[int]]
    """Token ids with special tokens, for calibration."""
    held_out: Sequence[Sequence[int]]
    """The same, for the comparison afterwards."""
    network: str
    """File to write; the weights go beside it."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))
