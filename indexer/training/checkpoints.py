"""Checkpoints of an interrupted training."""

import json
import re
from pathlib import Path

CHECKPOINTS = "checkpoints"
STATE = "trainer_state.json"
"""Written last, so that a checkpoint with it is whole."""


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint; one that was cut off while it was written is passed over."""
    found = [
        (int(name[1]), path)
        for path in folder.glob("checkpoint-*")
        if (name := re.fullmatch(r"checkpoint-(\d+)", path.name)) and _is_whole(path)
    ]
    return max(found)[1] if found else None


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / STATE).read_bytes())
    except (OSError, ValueError):
        return False
    return any(checkpoint.rglob("*.safetensors"))
