"""`bifocal evaluate` from a folder to a report: real rows and index, an encoder that costs nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from typer.testing import CliRunner

from app.engine.embedder import Embedder
from app.engine.reading_models import ReadingModels
from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli import composition, evaluation_subject
from indexer.cli.commands import app
from indexer.evaluation.asking import Answer, ask_all
from indexer.evaluation.configurations import Configuration, configurations
from indexer.evaluation.dataset import CorpusDocument, read_corpus, read_folder
from indexer.evaluation.indexing import MAX_BATCH_BYTES, MAX_BATCH_DOCUMENTS, batches
from indexer.evaluation.metrics import NDCG
from indexer.evaluation.remote import ROUND_TRIP, Service, ServiceRefused
from tests.api.stand_up import client_of, settings_in, worker_of
from tests.indexer.judged import CORPUS, QUERIES, write_folder, write_lines
from tests.reading_substitutes import WordOverlapReader
from tests.substitutes import WordHashEmbedder

DENSE = Configuration("dense", "dense")


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> WordHashEmbedder:
    """Passes for the configured model."""
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "untouched"))
    return embedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "animals")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A running one with a worker. The test client has what `Service` uses of an httpx.Client."""
    settings = settings_in(tmp_path / "service")
    with worker_of(settings), client_of(settings) as client:
        yield Service(cast(httpx.Client, client))


def evaluate(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["evaluate", *(str(argument) for argument in arguments)])
    assert result.exit_code == exit_code, result.output
    return result.output


def results_in(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "results.json").read_text(encoding="utf-8"))
    return found


def test_a_folder_becomes_figures_and_files(folder: Path, tmp_path: Path) -> None:
    """Each query shares words with its one relevant document alone, which therefore comes first."""
    output = tmp_path / "report"
    printed = evaluate("--data", folder, "--output", output)
    assert "1 judged queries have no relevant document" in printed
    found = results_in(output)
    names = [each["name"] for each in found["configurations"]]
    assert names == ["lexical", "dense", "hybrid"]
    for each in found["configurations"]:
        assert each["metrics"][NDCG] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert found["indexing"]["documents"] == {"created": 20}
    latencies = [set(each["latency_ms"]) for each in found["configurations"]]
    with_model = {"encode", "retrieve", "fetch", "total"}
    assert latencies == [with_model - {"encode"}, with_model, with_model]
    assert len((output / "dense.run").read_text().splitlines()) == 3 * 20
    assert (output / "report.html").stat().st_size > 0


def test_the_configured_store_is_left_alone(folder: Path, tmp_path: Path) -> None:
    evaluate("--data", folder, "--output", tmp_path / "report")
    assert not (tmp_path / "untouched").exists()


def test_in_a_kept_store_unchanged_documents_cost_nothing(
    folder: Path, tmp_path: Path, embedder: WordHashEmbedder
) -> None:
    options = ("--data", folder, "--home", tmp_path / "home", "--output", tmp_path / "report")
    evaluate(*options)
    n_texts = embedder.n_texts
    evaluate(*options, "--modes", "dense")
    assert results_in(tmp_path / "report")["indexing"]["documents"] == {"unchanged": 20}
    assert embedder.n_texts - n_texts == 1 + 3  # the queries, the first of them twice


def test_a_collection_with_other_documents_is_refused(folder: Path, tmp_path: Path) -> None:
    options = ("--home", tmp_path / "home", "--output", tmp_path / "report", "--collection", "animals")
    evaluate("--data", folder, *options)
    write_lines(folder / "corpus.jsonl", CORPUS[:15])
    assert "the collection 'animals' holds 5 documents that the corpus lacks; name another one" in evaluate(
        "--data", folder, *options, exit_code=1
    )


def test_documents_that_ingestion_rejects_are_counted_and_explained(folder: Path, tmp_path: Path) -> None:
    write_lines(folder / "corpus.jsonl", [*CORPUS, {"_id": "blank", "text": " "}])
    printed = evaluate("--data", folder, "--output", tmp_path / "report")
    assert "1 documents of the corpus were rejected, the first because: blank: " in printed
    assert results_in(tmp_path / "report")["indexing"]["documents"] == {"created": 20, "rejected": 1}


def test_an_existing_collection_is_measured_with_queries_and_judgements(folder: Path, tmp_path: Path) -> None:
    home, output = tmp_path / "home", tmp_path / "report"
    evaluate("--data", folder, "--home", home, "--output", output, "--collection", "animals")
    files = ("--queries", folder / "queries.jsonl", "--qrels", folder / "qrels" / "test.tsv")
    evaluate("--collection", "animals", *files, "--home", home, "--output", output)
    found = results_in(output)
    assert found["indexing"] is None
    assert found["configurations"][0]["metrics"][NDCG]["mean"] == 1.0


def test_only_the_first_queries_are_asked_on_request(folder: Path, tmp_path: Path) -> None:
    printed = evaluate("--data", folder, "--output", tmp_path / "report", "--limit-queries", 2)
    assert "only the first 2 of 3 queries were asked" in printed
    assert results_in(tmp_path / "report")["data_set"]["n_queries"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --data DIR, or --collection, --queries and --qrels for documents"),
        (["--data", "x", "--queries", "y"], "--data brings queries and judgements"),
        (
            ["--data", "x", "--modes", "sparse"],
            "there is no mode 'sparse'; available are hybrid, dense, lexical, rerank",
        ),
        (["--data", "x", "--modes", "dense,dense"], "the mode 'dense' is named twice"),
        (["--data", "x", "--modes", ","], "no mode was named; available are hybrid, dense, lexical, rerank"),
        (["--data", "nowhere"], "nowhere has no split 'test'; there are none"),
    ],
)
def test_options_that_make_no_sense_are_one_line(arguments: list[str], message: str) -> None:
    assert evaluate(*arguments, exit_code=1).startswith(f"bifocal: {message}")


def test_a_service_and_a_store_at_once_are_refused(folder: Path) -> None:
    printed = evaluate("--data", folder, "--url", "http://127.0.0.1:9", "--home", "x", exit_code=1)
    assert printed.startswith("bifocal: --url asks a running service, --home a store in this process")


def test_a_service_that_is_not_there_is_one_line(folder: Path) -> None:
    printed = evaluate("--data", folder, "--url", "http://127.0.0.1:9", exit_code=1)
    assert printed.startswith("bifocal: no answer from http://127.0.0.1:9")


def test_a_running_service_gives_the_same_rankings_as_the_store(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    evaluate("--data", folder, "--output", tmp_path / "report")
    dataset = read_folder(folder, split="test")
    indexed = service.index("animals", read_corpus(folder / "corpus.jsonl"))
    assert indexed.counts == {"created": 20}
    for configuration in configurations(["lexical", "dense", "hybrid"]):
        measured = ask_all(dataset, configuration, service.asking("animals"))
        lines = (tmp_path / "report" / f"{configuration.name}.run").read_text().splitlines()
        local = [line.split()[:3:2] for line in lines]
        assert local == [[query_id, each] for query_id, ids in measured.run.items() for each in ids]
        assert ROUND_TRIP in measured.latencies_ms


def test_a_service_tells_why_documents_were_rejected(service: Service) -> None:
    documents = [CorpusDocument("a", None, "text"), CorpusDocument("b", None, " ")]
    indexed = service.index("mixed", iter(documents))
    assert indexed.n_rejected == 1
    assert str(indexed.first_error).startswith("b: ")


def test_a_service_with_other_documents_is_refused(service: Service) -> None:
    service.index("mixed", iter([CorpusDocument("a", None, "text")]))
    with pytest.raises(InvalidInput, match="holds 1 documents that the corpus lacks"):
        service.index("mixed", iter([CorpusDocument("b", None, "text")]))


def test_what_a_service_refuses_is_told_in_its_words(service: Service) -> None:
    with pytest.raises(ServiceRefused, match="answered 404: there is no collection 'nowhere'"):
        service.collection("nowhere")


def test_batches_are_cut_by_number_and_by_size() -> None:
    many = [CorpusDocument(f"d{i}", None, "x") for i in range(MAX_BATCH_DOCUMENTS + 1)]
    assert [len(batch) for batch in batches(iter(many))] == [MAX_BATCH_DOCUMENTS, 1]
    large = [CorpusDocument(f"d{i}", None, "x" * (MAX_BATCH_BYTES // 2)) for i in range(3)]
    assert [len(batch) for batch in batches(iter(large))] == [1, 1, 1]


def test_the_first_query_is_asked_once_more_before_times_count(folder: Path) -> None:
    asked = []

    def ask(query: str, _: Configuration) -> Answer:
        asked.append(query)
        return Answer(("d0",), {"total": 100.0 if len(asked) == 1 else 1.0}, is_truncated=True)

    measured = ask_all(read_folder(folder, split="test"), DENSE, ask)
    first = QUERIES[0]["text"]
    assert asked[:2] == [first, first]
    assert measured.latencies_ms["total"].tolist() == [1.0, 1.0, 1.0]
    assert measured.n_truncated == 3


def test_modes_keep_their_order() -> None:
    assert [each.name for each in configurations(["hybrid", "dense"])] == ["hybrid", "dense"]


def test_reranking_is_a_mode_where_a_model_reranks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = WordOverlapReader()
    monkeypatch.setattr(evaluation_subject, "load_reading_models", lambda _: ReadingModels(reader, reader))
    evaluate("--data", folder, "--modes", "hybrid,rerank", "--output", tmp_path / "report")
    plain, reranked = results_in(tmp_path / "report")["configurations"]
    assert (plain["fields"], reranked["fields"]) == (
        {"mode": "hybrid", "rerank": False},
        {"mode": "hybrid", "rerank": True},
    )
    assert "rerank" in reranked["latency_ms"]
    assert "rerank" not in plain["latency_ms"]


def test_reranking_without_a_model_is_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_subject, "load_reading_models", lambda _: ReadingModels())
    printed = evaluate("--data", folder, "--modes", "rerank", "--output", tmp_path / "report", exit_code=1)
    assert "bifocal: 'rerank' needs a model that reranks; set BIFOCAL_RERANKER" in printed


def test_tuned_weights_are_chosen_on_one_split_and_judged_on_another(folder: Path, tmp_path: Path) -> None:
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq-unjudged\td18\t1\n")
    printed = evaluate(
        "--data", folder, "--tune", "train", "--modes", "hybrid", "--output", tmp_path / "report"
    )
    found = results_in(tmp_path / "report")
    assert [each["name"] for each in found["configurations"]] == ["hybrid", "tuned"]
    assert (found["tuning"]["split"], found["data_set"]["split"]) == ("train", "test")
    assert found["configurations"][1]["fields"] == found["tuning"]["chosen"]
    assert "The best settings on 'train'" in printed
    assert "--apply makes them the collection's" in printed
    assert "Tuning" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{folder}", "--tune", "test"], "--tune and --split are both 'test'; what is chosen"),
        (["--data", "{folder}", "--tune", "dev"], "{folder} has no split 'dev'; there are test"),
    ],
)
def test_tuning_needs_another_split(folder: Path, arguments: list[str], message: str) -> None:
    filled = [argument.format(folder=folder) for argument in arguments]
    assert evaluate(*filled, exit_code=1).startswith(f"bifocal: {message.format(folder=folder)}")
