"""`bifocal reindex` and `bifocal rollback`, with an encoder that costs nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.engine.embedder import Embedder
from app.settings import Settings
from indexer.cli import composition
from indexer.cli.commands import app
from tests.substitutes import WordHashEmbedder

FINGERPRINT = composition.encoder_files(Settings()).fingerprint
LONG = " ".join(f"Sentence {i} of a long note about rivers." for i in range(60))


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is ingested into the collection `default`."""
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BIFOCAL_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(composition, "load_embedder", load)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "long.txt").write_text(LONG)
    (folder / "fire.md").write_text("Fire needs air to burn.")
    bifocal("ingest", folder)
    return folder


def load(_settings: Settings) -> Embedder:
    return WordHashEmbedder(fingerprint=FINGERPRINT)


def bifocal(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def stats(name: str = "default") -> Any:
    return json.loads(bifocal("collections", "stats", name, "--json"))


def test_a_collection_is_reindexed_and_rolled_back(notes: Path) -> None:
    before = stats()
    printed = bifocal("reindex", "default", "--max-tokens", 64, "--overlap-tokens", 0, "--exact-limit", 0)
    assert "Switched: 2 documents copied" in printed
    assert "bifocal rollback default" in printed
    after = stats()
    assert after["n_passages"] > before["n_passages"] == stats("default-standby")["n_passages"]
    assert after["splitter"] == {"max_tokens": 64, "overlap_tokens": 0, "version": 1}
    assert after["index_settings"] == {"exact_limit": 0}
    (notes / "fire.md").write_text("Fire needs air and wood to burn.")
    bifocal("ingest", notes)
    assert "Switched: 1 documents copied" in bifocal("rollback", "default")
    assert stats()["splitter"] == before["splitter"]
    hits = json.loads(bifocal("search", "wood", "--json"))["hits"]
    assert hits[0]["document_id"] == "fire.md"


def test_the_standby_is_listed_and_can_be_deleted() -> None:
    bifocal("reindex", "default", "--standby", "former", "--exact-limit", -1)
    listed = json.loads(bifocal("collections", "list", "--json"))
    assert [(each["name"], each["standby_of"]) for each in listed] == [
        ("default", None),
        ("former", "default"),
    ]
    bifocal("collections", "delete", "former", "--yes")
    assert "has no standby" in bifocal("rollback", "default", exit_code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reindex", "nowhere"], "there is no collection 'nowhere'"),
        (["reindex", "default", "--standby", "No Name"], "a standby cannot be called 'No Name'"),
        (["reindex", "default", "--standby", "default"], "'default' is a collection already"),
        (["reindex", "default", "--max-tokens", "40"], "at most half of max_tokens is allowed, that is 20"),
        (["reindex", "default", "--model", "elsewhere"], "set BIFOCAL_SECOND_EMBEDDER to it"),
        (["rollback", "default"], "'default' has no standby"),
    ],
)
def test_what_is_not_allowed_is_one_line(arguments: list[str], message: str) -> None:
    line = bifocal(*arguments, exit_code=1)
    assert line.startswith("bifocal: ")
    assert message in line


def test_documents_are_not_ingested_into_a_standby(notes: Path) -> None:
    bifocal("reindex", "default")
    line = bifocal("ingest", notes, "--collection", "default-standby", exit_code=1)
    assert "'default-standby' is the standby of 'default'" in line


def test_a_job_that_fails_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_another(_settings: Settings) -> Embedder:
        return WordHashEmbedder(fingerprint="another model")

    monkeypatch.setattr(composition, "load_embedder", load_another)
    line = bifocal("reindex", "default", exit_code=1)
    assert "is failed" in line
    assert "start service and worker with that model first" in line
    assert [each["name"] for each in json.loads(bifocal("collections", "list", "--json"))] == ["default"]
