"""The examples in docstrings give what they say."""

import doctest
import importlib

import pytest

from tests.project.repository import ROOT, tracked_files


def modules_with_examples() -> list[str]:
    found = [
        path.relative_to(ROOT).with_suffix("")
        for path in tracked_files()
        if path.suffix == ".py" and ">>> " in path.read_text(encoding="utf-8")
    ]
    return [".".join(path.parts) for path in found if path.parts[0] in {"app", "indexer"}]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted
    assert not outcome.failed
