"""What an evaluation prints."""

import json
from pathlib import Path
from typing import Any

from indexer.cli.printing import output, print_table
from indexer.evaluation.metrics import METRICS
from indexer.evaluation.remote import ROUND_TRIP

SIGNIFICANT = 0.05


def print_results(found: dict[str, Any], folder: Path, *, is_applied: bool) -> None:
    console = output()
    for note in found["notes"]:
        console.print(f"Note: {note.rstrip('.')}.", markup=False)
    print_table(
        ("configuration", *METRICS, "ms p50", "ms p95"),
        [
            (
                each["name"],
                *(_shown(each["metrics"][metric]) for metric in METRICS),
                *_latency(each["latency_ms"]),
            )
            for each in found["configurations"]
        ],
    )
    if found["differences"]:
        print_table(
            ("metric", "first", "second", "difference", "p", ""),
            [
                (
                    each["metric"],
                    each["first"],
                    each["second"],
                    f"{each['difference']:+.4f}",
                    f"{each['p_value']:.4f}",
                    "significant" if each["p_value"] < SIGNIFICANT else "",
                )
                for each in found["differences"]
            ],
        )
    if found["tuning"]:
        console.print(
            f"The best settings on {found['tuning']['split']!r}: {json.dumps(found['tuning']['chosen'])}; "
            + ("the collection has them now." if is_applied else "--apply makes them the collection's."),
            markup=False,
        )
    console.print(f"Written to {folder}: report.html, results.json, queries.tsv and the runs.", markup=False)


def _shown(estimate: dict[str, float | None]) -> str:
    if estimate["low"] is None:
        return f"{estimate['mean']:.4f}"
    return f"{estimate['mean']:.4f} ({estimate['low']:.4f} to {estimate['high']:.4f})"


def _latency(stages: dict[str, dict[str, float]]) -> tuple[str, str]:
    whole = stages.get(ROUND_TRIP) or stages["total"]
    return f"{whole['p50']:.1f}", f"{whole['p95']:.1f}"
