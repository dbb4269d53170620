"""How commands print: for people on a terminal, for files and other programs elsewhere, and as JSON."""

import datetime as dt
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

UNBOUNDED = 100_000
"""Characters of a line that goes into a file or another program."""


def print_json(content: object) -> None:
    """Plain JSON: no colour, no folding."""
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, default=_json_value) + "\n")


def _json_value(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def print_table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """Nothing is cut: cells fold on a terminal, and elsewhere lines are as long as they are."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*(escape(_shown(value)) for value in line))
    output().print(table)


def output() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=UNBOUNDED)


def print_fields(fields: Mapping[str, object]) -> None:
    print_table(("", ""), list(fields.items()))


def _shown(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    return "" if value is None else str(value)
