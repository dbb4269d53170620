"""`bifocal train` and `bifocal pretrain` from arguments to what they print and write."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from app.engine.torch_models import load_module
from app.engine.trained_models import find_trained_model
from app.errors import BadFile, InvalidInput
from indexer.cli.commands import app
from indexer.training.comparison import COMPARISON
from indexer.training.recipes import known_recipes, read_recipe, settings_of
from indexer.training.request import PretrainingRequest, TrainingRequest
from tests.engine.tiny_model import write_tiny_model
from tests.training.tiny_bases import write_corpus, write_labelled


@pytest.fixture
def shared_base(bases: dict[str, Path], tmp_path: Path) -> Path:
    """A bi-encoder that the service could share."""
    packaged = shutil.copytree(bases["bert"], tmp_path / "packaged")
    (packaged / "special_tokens_map.json").write_text("{}")
    (packaged / "vocab.txt").write_text("")
    return write_tiny_model(tmp_path / "base", tokenizer_from=packaged)


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BIFOCAL_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    return tmp_path / "models"


def run(*arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


FEW = ("--max-steps", 2, "--batch-tokens", 256, "--precision", "fp32")


def test_a_named_classifier_is_found_and_loaded_by_the_service(
    shared_base: Path, models: Path, tmp_path: Path
) -> None:
    data = write_labelled(tmp_path / "data")
    printed = run("train", "sequence", "--base", shared_base, "--data", data, "--name", "taste", *FEW)
    assert "Written to build/training/taste" in printed
    files = find_trained_model("taste", models=models)
    assert (files.task, files.labels) == ("sequence", ("bad", "good"))
    config: Any = load_module(files).config
    assert config.id2label == {0: "bad", 1: "good"}
    card = (models / "taste" / "README.md").read_text()
    assert "| accuracy |" in card
    assert "train 16, validation 8, test 8" in card


def test_a_lens_keeps_the_word_embeddings_of_its_base(
    shared_base: Path, models: Path, tmp_path: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    options = ("--freeze", "all-but-last-1", "--held-out", 0.2, "--max-tokens", 40)
    printed = run("pretrain", "--base", shared_base, "--corpus", corpus, "--name", "lens", *options, *FEW)
    assert "nsp_accuracy" in printed
    files = find_trained_model("lens", models=models)
    assert (files.task, files.architecture) == ("lens", "BertForPreTraining")
    assert files.weights.stat().st_size < 100_000  # the embeddings alone would be more
    load_module(files)
    assert "| perplexity |" in (models / "lens" / "README.md").read_text()


def test_freezing_is_compared_in_three_processes(bases: dict[str, Path], tmp_path: Path) -> None:
    data = write_labelled(tmp_path / "data")
    printed = run(
        "train",
        "sequence",
        "--base",
        bases["bert"],
        "--data",
        data,
        "--output",
        "out",
        "--compare-freezing",
        *FEW,
    )
    found = json.loads((tmp_path / "out" / f"{COMPARISON}.json").read_text())
    trained = [mode["n_trainable"] for mode in found["modes"]]
    assert [mode["freeze"] for mode in found["modes"]] == ["none", "all-but-last-2", "encoder"]
    assert trained == sorted(trained, reverse=True)
    assert all(mode["peak_memory_bytes"] > 0 for mode in found["modes"])
    table = (tmp_path / "out" / f"{COMPARISON}.md").read_text()
    assert all(f"{n:,}" in table and f"{n:,}" in printed for n in trained)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "name a task"),
        (
            ["train", "translation", "--data", "x"],
            "the task 'translation' is not known; allowed are sequence",
        ),
        (["train", "--recipe", "nothing"], "no recipe 'nothing'; there are lens"),
        (["train", "token", "--recipe", "sentiment"], "the recipe 'sentiment' trains sequence, not token"),
        (["train", "sequence"], "--data is missing"),
        (["train", "reader", "--name", "x", "--data", "x"], "this is a reader model of a bert"),
        (["pretrain", "--objective", "clm", "--corpus", "x"], "--objective 'clm' is not known"),
        (["pretrain", "--config", "gpt", "--corpus", "x"], "--config 'gpt' is not known"),
        (["pretrain", "--name", "x", "--config", "bert", "--corpus", "x"], "this is a new model"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(arguments: list[str], message: str) -> None:
    printed = run(*arguments, exit_code=1)
    assert message in printed
    assert len(printed.strip().splitlines()) == 1


# Recipes


@pytest.mark.parametrize("name", known_recipes())
def test_a_recipe_that_ships_is_one_its_training_accepts(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    assert recipe.name == name
    assert {"summary", "sources", "licence", "limits"} == recipe.card.keys()
    kind = PretrainingRequest if recipe.task == "lens" else TrainingRequest
    assert settings_of(recipe, kind, overrides={"paths": [tmp_path]})["base"] == (
        "sentence-transformers/all-MiniLM-L6-v2"
    )


def test_what_is_given_comes_before_the_recipe(tmp_path: Path) -> None:
    settings = settings_of(
        read_recipe("tagger"), TrainingRequest, overrides={"seed": 7, "epochs": None, "paths": [tmp_path]}
    )
    assert settings["seed"] == 7
    assert settings["epochs"] == read_recipe("tagger").settings["epochs"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: a\ntask: token\nsettings: {}\nextra: 1", "extra is not known; allowed are name, task"),
        ("name: a\ntask: token", "lacks 'settings'"),
        ("name: a\ntask: token\nsettings: {}\ncard: {author: b}", "card: author is not known"),
        ("- a", "is no mapping"),
        ("a: [", "is no YAML"),
    ],
)
def test_a_malformed_recipe_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadFile, match=message):
        read_recipe(str(path))


def test_a_setting_that_the_task_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    content = {"name": "own", "task": "token", "settings": {"speed": 3}}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(InvalidInput, match="the recipe 'own' sets speed; allowed are accumulate"):
        settings_of(read_recipe(str(path)), TrainingRequest, overrides={})
