"""`bifocal evaluate --tune --apply`: what was chosen becomes the collection's default."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest
from typer.testing import CliRunner

from app.domain import Fusion, SearchSettings
from app.engine.embedder import Embedder
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.cli import composition
from indexer.cli.commands import app
from indexer.evaluation.remote import Service
from tests.api.stand_up import client_of, settings_in, worker_of
from tests.indexer.judged import write_folder
from tests.substitutes import WordHashEmbedder

TRAIN = "query-id\tcorpus-id\tscore\nq-unjudged\td18\t1\n"


@pytest.fixture(autouse=True)
def _embedder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Passes for the configured model."""
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "untouched"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_folder(tmp_path / "animals")
    (folder / "qrels" / "train.tsv").write_text(TRAIN)
    return folder


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = settings_in(tmp_path / "service")
    with worker_of(settings), client_of(settings) as client:
        client.put("/v1/collections/animals")
        yield Service(cast(httpx.Client, client))


OWN = ("-c", "x", "--queries", "{folder}/queries.jsonl", "--qrels", "{folder}/qrels/test.tsv")


def evaluate(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["evaluate", *(str(argument) for argument in arguments)])
    assert result.exit_code == exit_code, result.output
    return result.output


def stored(home: Path) -> SearchSettings:
    rows = SqliteRows(home / "bifocal.db")
    try:
        return rows.collection("animals").search
    finally:
        rows.close()


def test_what_was_chosen_replaces_what_the_collection_had(folder: Path, tmp_path: Path) -> None:
    """Every setting finds the one relevant document, so the defaults are the best."""
    home = tmp_path / "home"
    options = ("--data", folder, "-c", "animals", "--home", home, "--output", tmp_path / "report")
    evaluate(*options, "--modes", "dense")
    rows = SqliteRows(home / "bifocal.db")
    rows.set_search_settings("animals", SearchSettings(Fusion(dense_weight=0.1)))
    rows.close()
    evaluate(*options, "--modes", "hybrid", "--tune", "train")
    assert stored(home) == SearchSettings(Fusion(dense_weight=0.1))
    printed = evaluate(*options, "--modes", "hybrid", "--tune", "train", "--apply")
    assert stored(home) == SearchSettings()
    assert "the collection has them now" in printed


def test_a_running_service_takes_what_was_chosen(service: Service) -> None:
    chosen = SearchSettings(Fusion("rrf", 0.3, 100), candidates=20)
    service.set_search_settings("animals", chosen)
    assert service.collection("animals")["search"] == {
        "fusion": {"method": "rrf", "dense_weight": 0.3, "depth": 100},
        "candidates": 20,
    }


def test_own_questions_are_tuned_on_a_second_file_of_judgements(folder: Path, tmp_path: Path) -> None:
    home, output = tmp_path / "home", tmp_path / "report"
    evaluate("--data", folder, "-c", "animals", "--home", home, "--output", output, "--modes", "dense")
    qrels = folder / "qrels"
    files = ("--queries", folder / "queries.jsonl", "--qrels", qrels / "test.tsv")
    options = ("-c", "animals", *files, "--home", home, "--output", output, "--modes", "hybrid")
    printed = evaluate(*options, "--tune", qrels / "train.tsv", "--apply")
    assert "The best settings on 'train'" in printed


def test_the_same_queries_for_tuning_and_judging_are_refused(folder: Path) -> None:
    (folder / "qrels" / "train.tsv").write_text(TRAIN + "q-newt\td19\t1\n")
    printed = evaluate("--data", folder, "--tune", "train", exit_code=1)
    assert printed.startswith("bifocal: the query 'q-newt' is judged in both")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{folder}", "--apply"], "--apply writes what --tune has chosen; give that, too"),
        (
            ["--data", "{folder}", "--tune", "train", "--apply"],
            "--apply writes to the collection, which is in",
        ),
        (
            [*OWN, "--tune", "train"],
            "--tune names a split of --data or, with --queries, a file of judgements; 'train' is no file",
        ),
    ],
)
def test_what_cannot_be_applied_or_tuned_is_refused(folder: Path, arguments: list[str], message: str) -> None:
    filled = [argument.format(folder=folder) for argument in arguments]
    assert evaluate(*filled, exit_code=1).startswith(f"bifocal: {message}")
