"""Text on which compiled models are calibrated: questions, claims and paragraphs of several fields.

`texts.jsonl` has one text per line with its source; NOTICE says where it comes from and under which terms.
"""

import json
from pathlib import Path

TEXTS = Path(__file__).with_name("texts.jsonl")


def calibration_texts() -> list[str]:
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]
