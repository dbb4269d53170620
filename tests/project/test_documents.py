import re
from pathlib import Path

import pytest

from app.settings import NOT_SETTINGS, PREFIX, Settings
from tests.project.repository import ROOT, documents, read, tracked_files
from tests.project.tables import benchmark_files_named, with_tables

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

each_document = pytest.mark.parametrize(
    "path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix()
)


def anchors(markdown: str) -> set[str]:
    """
    >>> sorted(anchors("# Quality and speed"))
    ['quality-and-speed']
    """
    headings = HEADING.findall(FENCE.sub("", markdown))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_lists_every_setting_and_endpoint() -> None:
    readme = read("README.md")
    assert readme == with_tables(readme), "run `make tables`"


@each_document
def test_benchmarks_and_results_named_in_documents_exist(path: Path) -> None:
    named = benchmark_files_named(path.read_text(encoding="utf-8"))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@each_document
def test_settings_named_in_documents_exist(path: Path) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | NOT_SETTINGS
    named = set(re.findall(rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9]\b", path.read_text(encoding="utf-8")))
    assert named <= known


@each_document
def test_make_targets_named_in_documents_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):(?!=)", read("Makefile"), re.MULTILINE))
    text = path.read_text(encoding="utf-8")
    code = (
        " ; ".join(re.findall(r"`([^`\n]+)`", text))
        + "\n"
        + "\n".join(m.group() for m in FENCE.finditer(text))
    )
    named = set(re.findall(r"\bmake ([a-z-]+)\b", code))
    assert named <= targets


@each_document
def test_relative_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{link} names no heading"


def test_documents_of_the_repository_are_found() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= {path.name for path in documents()}


def test_every_decision_is_listed_and_has_its_sections() -> None:
    index = read("docs/decisions/README.md")
    pages = [path for path in tracked_files() if re.match(r"\d{4}-", path.name) and "decisions" in path.parts]
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"]({page.name})" in index, f"{page.name} is not in docs/decisions/README.md"
        assert text.startswith(f"# {page.name[:4]}. ")
        sections = re.findall(r"^## (\w+)", text, re.MULTILINE)
        assert {"Context", "Decision", "Consequences", "Alternatives"} <= set(sections), page.name


def test_changelog_keeps_the_form_of_keep_a_changelog() -> None:
    text = read("CHANGELOG.md")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", version) for version in versions[1:])
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
