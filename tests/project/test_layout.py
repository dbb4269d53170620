import os
import re

from tests.project.repository import ROOT, read, tracked_files

MAX_LINES = 400
MAX_TEST_LINES = 500
EMPTY_NAMES = {"utils", "util", "helpers", "common", "core", "base", "misc"}
"""Names that say nothing about what is inside."""

REGISTRIES = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("download", "pytorch", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("huggingface", "co"),
    ("conda", "anaconda", "org"),
    ("docker", "io"),
    ("ghcr", "io"),
]
"""Joined when the test runs, so that this file does not contain what it forbids."""


def test_no_python_file_is_too_long_to_read() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in tracked_files()
        if path.suffix == ".py"
    }
    assert lengths
    too_long = {
        name: length
        for name, length in lengths.items()
        if length > (MAX_TEST_LINES if name.startswith("tests/") else MAX_LINES)
    }
    assert too_long == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [path for path in tracked_files() if path.suffix == ".py"]
    assert [path for path in modules if {path.stem, path.parent.name} & EMPTY_NAMES] == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    hosts = re.compile(r"|".join(r"\.".join(parts) + r"\b" for parts in REGISTRIES))
    naming = {}
    for path in tracked_files():
        found = hosts.search(path.read_bytes().decode(errors="replace"))
        if found:
            naming[path.relative_to(ROOT).as_posix()] = found.group()
    assert naming == {}


def test_ci_script_is_executable_and_strict() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "set -euo pipefail" in read(".ci/run")


def test_ci_runs_the_targets_that_people_run() -> None:
    assert re.findall(r"^make (\S+)$", read(".ci/run"), re.MULTILINE) == [".venv/dev.stamp", "check", "test"]


def test_every_phony_target_has_a_rule() -> None:
    makefile = read("Makefile")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    rules = set(re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE))
    assert set(phony[1].split()) == rules
