"""Text on which compiled models are calibrated: questions, claims and paragraphs of several fields.

`texts.jsonl` has a text per line, `pairs.jsonl` a question with a passage, and each its source; NOTICE says
where they come from and under which terms.
"""

import json
from dataclasses import dataclass
from pathlib import Path

TEXTS = Path(__file__).with_name("texts.jsonl")
PAIRS = Path(__file__).with_name("pairs.jsonl")


@dataclass(frozen=True, slots=True)
class CalibrationPair:
    question: str
    title: str
    """Empty where there is none."""
    text: str


def calibration_texts() -> list[str]:
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


def calibration_pairs() -> list[CalibrationPair]:
    """Two thirds of the passages answer their question."""
    lines = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [CalibrationPair(line["question"], line["title"], line["text"]) for line in lines]
