"""Texts with one label each: JSON lines with `text` and `label`, perhaps with `labels.json` beside them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import BadFile
from indexer.evaluation.lines import objects, refuse

LABELS = "labels.json"


@dataclass(frozen=True, slots=True)
class LabelledText:
    text: str
    label: str
    path: Path
    line: int


def read_labelled(path: Path, *, allowed: Sequence[str] = ()) -> list[LabelledText]:
    """
    Args:
        allowed: labels; empty allows any.

    Raises:
        BadFile: no text, a blank one, a label that is missing or not allowed, or no line at all.
    """
    known = set(allowed)
    examples = []
    for line, fields in objects(path):
        label = _label(path, line, fields)
        if known and label not in known:
            refuse(path, line, f"the label {label!r} does not occur in training; there are {_some(allowed)}")
        examples.append(LabelledText(_text(path, line, fields), label, path, line))
    if not examples:
        raise BadFile(f"{path} has no example")
    return examples


def labels_of(examples: Sequence[LabelledText], folder: Path) -> list[str]:
    """All labels in fixed order: that of labels.json, or sorted.

    Raises:
        BadFile: labels.json and the examples do not match, a label has one example, or all have one label.
    """
    counts = Counter(example.label for example in examples)
    labels = _declared(folder) or sorted(counts)
    known = set(labels)
    for example in examples:
        if example.label not in known:
            refuse(example.path, example.line, f"the label {example.label!r} is not in {folder / LABELS}")
        if counts[example.label] == 1:
            refuse(
                example.path,
                example.line,
                f"the label {example.label!r} has this one example alone; a label needs two or more",
            )
    missing = [label for label in labels if label not in counts]
    if missing:
        raise BadFile(f"{folder / LABELS} has labels without an example: {_some(missing)}")
    if len(labels) < 2:
        raise BadFile(f"{examples[0].path} has the label {labels[0]!r} alone; two or more are needed")
    return labels


def hold_out(
    examples: Sequence[LabelledText], *, share: float, seed: int
) -> tuple[list[LabelledText], list[LabelledText]]:
    """(kept, held out): of every label that share, but at least one example stays on each side."""
    by_label: dict[str, list[LabelledText]] = {}
    for i in np.random.default_rng(seed).permutation(len(examples)):
        by_label.setdefault(examples[i].label, []).append(examples[i])
    kept, held_out = [], []
    for of_label in by_label.values():
        n = min(max(1, round(share * len(of_label))), len(of_label) - 1)
        held_out += of_label[:n]
        kept += of_label[n:]
    return kept, held_out


def _text(path: Path, line: int, fields: dict[str, Any]) -> str:
    text = fields.get("text")
    if not isinstance(text, str):
        refuse(path, line, "'text' is missing" if text is None else "'text' is no string")
    if not text.strip():
        refuse(path, line, "'text' is blank")
    return text


def _label(path: Path, line: int, fields: dict[str, Any]) -> str:
    label = fields.get("label")
    if isinstance(label, bool) or not isinstance(label, str | int):
        refuse(path, line, "'label' is missing" if label is None else "'label' is no string or whole number")
    return str(label)


def _declared(folder: Path) -> list[str]:
    file = folder / LABELS
    if not file.is_file():
        return []
    try:
        labels = json.loads(file.read_bytes())
    except ValueError as error:
        raise BadFile(f"{file} is no JSON: {error}") from error
    if not isinstance(labels, list) or not labels or len(set(map(str, labels))) != len(labels):
        raise BadFile(f"{file} is no list of labels that differ")
    return [str(label) for label in labels]


def _some(labels: Sequence[str], *, n: int = 10) -> str:
    return ", ".join(labels[:n]) + (f" and {len(labels) - n} more" if len(labels) > n else "")
