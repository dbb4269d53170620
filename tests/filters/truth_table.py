"""The rows of the truth table in docs/filters.md."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from app.domain import Metadata
from app.filters import Filter, parse_filter

DOCUMENT = Path(__file__).parents[2] / "docs" / "filters.md"
ROW = re.compile(r"^\| `(\{.*\})` \| `(\{.*\})` \| (true|false) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    metadata: Metadata
    condition: Filter
    result: bool
    text: str


def rows() -> list[Row]:
    found = [
        Row(
            json.loads(metadata), parse_filter(json.loads(written)), result == "true", f"{metadata} {written}"
        )
        for metadata, written, result in ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    ]
    assert len(found) > 80
    return found
