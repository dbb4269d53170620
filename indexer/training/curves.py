"""The learning curve of a training as a picture, drawn from its log."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.templates import rendered

WIDTH, HEIGHT, MARGIN = 720, 300, 50
PICTURE = "curve.svg"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    points: Sequence[Point]
    """Pixels."""
    low: float
    high: float


def write_curve(log: Path, picture: Path, *, metric: str) -> None:
    """Draw the loss and the metric over the steps; each has its own scale."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]
    last = max((line["step"] for line in lines), default=0) or 1
    curves = [
        curve
        for name, field in (("training loss", "loss"), (metric, f"eval_{metric}"))
        if (curve := _curve(name, field, lines, last)) is not None
    ]
    drawn = rendered(
        "indexer.training",
        "curve.svg.j2",
        curves=curves,
        last=last,
        width=WIDTH,
        height=HEIGHT,
        margin=MARGIN,
    )
    picture.write_text(drawn, encoding="utf-8")


def _curve(name: str, field: str, lines: Sequence[dict[str, Any]], last: int) -> Curve | None:
    values = [(line["step"], float(line[field])) for line in lines if line.get(field) is not None]
    if not values:
        return None
    low, high = min(v for _, v in values), max(v for _, v in values)
    span = (high - low) or 1.0
    points = [
        (
            round(MARGIN + step / last * (WIDTH - 2 * MARGIN), 1),
            round(HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN), 1),
        )
        for step, value in values
    ]
    return Curve(name, points, low, high)
