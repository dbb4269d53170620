"""The tables of README.md that are made from the code. `make tables` writes them anew."""

import json
import re
from pathlib import Path

from app.settings import PREFIX, Settings
from tests.project.repository import ROOT, read


def settings_table() -> str:
    """Variable, default, meaning."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        is_flag = isinstance(field.default, bool)
        default = str(field.default).lower() if is_flag else _shown_path(field.default)
        shown = f"`{default}`" if default else "empty"
        rows.append(f"| `{PREFIX}{name.upper()}` | {shown} | {field.description} |")
    return "\n".join(rows)


def _shown_path(value: object) -> str:
    if value == ():
        return ""
    return str(value).replace(f"{ROOT}/", "").replace(str(Path.home()), "~")


def endpoints_table() -> str:
    """Method and path, summary; in the order of the interface's description."""
    rows = ["| | |", "| --- | --- |"]
    for path, methods in json.loads(read("docs/openapi.json"))["paths"].items():
        for method, operation in methods.items():
            rows.append(f"| `{method.upper()} {path}` | {operation['summary']} |")
    return "\n".join(rows)


def with_tables(markdown: str) -> str:
    """`markdown` with every marked table as it should be."""
    for name, table in (("settings", settings_table()), ("endpoints", endpoints_table())):
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = markdown.partition(begin)
        assert found, f"{begin.strip()} is missing"
        after = rest[rest.index(end) :]
        markdown = before + begin + table + after
    return markdown


def write_tables(path: Path) -> None:
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


def benchmark_files_named(markdown: str) -> set[str]:
    return set(re.findall(r"\bbenchmarks/[\w/]+\.(?:py|json)\b", markdown))


if __name__ == "__main__":
    write_tables(ROOT / "README.md")
