"""`bifocal answer` and the reranked `bifocal search`, with a reader that counts shared words."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.engine.embedder import Embedder
from app.engine.reading_models import ReadingModels
from app.settings import Settings
from indexer.cli import composition
from indexer.cli.commands import app
from tests.reading_substitutes import overlap_models
from tests.substitutes import WordHashEmbedder

TEXT = "The river is deep.\n\nThe bridge that crosses\nthe river is in Torun."


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note in the default collection, and models that cost nothing."""
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setattr(composition, "load_reading_models", lambda _: overlap_models())
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "home"))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "note.txt").write_text(TEXT)
    (folder / "other.txt").write_text("A castle.")
    bifocal("ingest", folder)


def bifocal(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def bifocal_json(*arguments: object) -> Any:
    return json.loads(bifocal(*arguments, "--json"))


def test_answer_prints_quotations_with_their_place() -> None:
    printed = bifocal("answer", "which bridge crosses the river that is deep in", "--top-k", "1")
    heading, quote, timings = printed.splitlines()
    assert heading.split()[1:] == ["Torun", "note.txt"]
    assert "crosses the river is in Torun." in quote
    start = TEXT.index("Torun")
    assert f"(note.txt, characters {start} to {start + 5})" in quote
    assert "read " in timings


def test_answer_as_json_has_every_number() -> None:
    found = bifocal_json("answer", "which bridge crosses the river that is deep in")
    best = found["answers"][0]
    assert TEXT[best["answer"]["start"] : best["answer"]["end"]] == best["answer"]["text"]
    assert found["answerable_probability"] == best["answer"]["score"]


def test_a_question_that_is_not_answered_is_told_so() -> None:
    printed = bifocal("answer", "whereabouts", "--filter", '{"field": "x", "eq": 1}')
    assert printed.startswith("Probably not answered here.")


def test_search_reranks_where_a_model_does_and_not_where_it_is_not_wanted() -> None:
    reranked = bifocal_json("search", "bridge river")
    assert reranked["reranking"]["n_reranked"] == 2
    assert reranked["hits"][0]["answer"] is not None
    plain = bifocal_json("search", "bridge river", "--no-rerank")
    assert plain["reranking"] is None
    assert plain["hits"][0]["answer"] is None


def test_without_models_answer_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "load_reading_models", lambda _: ReadingModels())
    assert "set BIFOCAL_READER" in bifocal("answer", "who", exit_code=1)
    assert "set BIFOCAL_RERANKER" in bifocal("search", "who", "--rerank", exit_code=1)
    assert bifocal_json("search", "bridge")["reranking"] is None


def test_models_list_names_every_role() -> None:
    assert [model["role"] for model in bifocal_json("models", "list")] == ["bi-encoder", "reranker", "reader"]
