"""The joint model from files to a folder that loads: a few steps on a tiny encoder."""

import json
import random
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from app.engine.embedder import Embedder
from app.engine.model_files import find_bi_encoder
from app.engine.torch_models import load_module
from app.engine.trained_models import find_trained_model
from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli import composition
from indexer.cli.commands import app
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group, read_groups
from indexer.training.joint.preparing import perturbed, without_repetition
from indexer.training.request import TrainingRequest
from indexer.training.running import MODEL, train
from tests.engine.tiny_model import write_tiny_model
from tests.substitutes import WordHashEmbedder


def squad(file: Path, *, n_titles: int) -> Path:
    articles = [
        {
            "title": f"Town {t}",
            "paragraphs": [
                {
                    "context": f"Town {t} has {t + 20} towers and a bridge of stone.",
                    "qas": [
                        {
                            "id": f"q{t}",
                            "question": f"How many towers has Town {t}?",
                            "answers": [{"text": f"{t + 20} towers", "answer_start": 10 + len(str(t))}],
                        }
                    ],
                }
            ],
        }
        for t in range(n_titles)
    ]
    file.write_text(json.dumps({"data": articles}))
    return file


def request(tmp_path: Path, *paths: Path, **options: object) -> TrainingRequest:
    packaged = find_bi_encoder("sentence-transformers/all-MiniLM-L6-v2").transformer
    base = write_tiny_model(tmp_path / "base", tokenizer_from=packaged)
    given: dict[str, object] = {
        "task": "reader-reranker",
        "base": str(base),
        "paths": list(paths),
        "output": tmp_path / "out",
        "max_steps": 4,
        "batch_tokens": 256,
        "learning_rate": 5e-3,
        "precision": "fp32",
        "decay": 0.5,
        "perturbed": 0.5,
    }
    return TrainingRequest(**{**given, **options})  # type: ignore[arg-type]


def test_a_trained_joint_model_is_a_folder_that_loads(tmp_path: Path) -> None:
    file = squad(tmp_path / "train.json", n_titles=8)
    groups = tmp_path / "groups.jsonl"
    rival = {"text": "A river without a bridge.", "relevance": 0, "answer": []}
    first = {"text": "Town 9 has 3 towers.", "title": "Town 9", "relevance": 1, "answer": [11, 19]}
    groups.write_text(json.dumps({"question": "How many towers has Town 9?", "passages": [first, rival]}))
    trained = train(request(tmp_path, file, groups))
    assert 0 <= trained.result.validation["span_f1"] <= 1
    assert trained.result.n_steps == 4
    files = find_trained_model(str(tmp_path / "out" / MODEL), models=tmp_path)
    assert (files.task, files.architecture) == ("reader-reranker", "JointModel")
    loaded = load_module(files)
    before = dict(trained.module.named_parameters())
    for name, parameter in loaded.named_parameters():
        assert parameter.detach().allclose(before[name].detach(), atol=1e-6), name


def test_word_embeddings_stay_those_of_the_base(tmp_path: Path) -> None:
    train(request(tmp_path, squad(tmp_path / "train.json", n_titles=4)))
    from safetensors import safe_open  # noqa: PLC0415

    with safe_open(tmp_path / "out" / MODEL / "model.safetensors", framework="pt") as stored:
        assert not [name for name in stored.keys() if "word_embeddings" in name]  # noqa: SIM118


def test_one_title_leaves_nothing_to_measure_on(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="at least two titles"):
        train(request(tmp_path, squad(tmp_path / "train.json", n_titles=1)))


def test_a_question_that_was_mined_is_not_repeated_without_its_rivals() -> None:
    alone = Group("Who?", (Candidate("He.", None, 1.0, (0, 2)),))
    mined = Group("Who?", (*alone.candidates, Candidate("It.", None, 0.0, NO_ANSWER)))
    assert without_repetition([alone, mined]) == [mined]
    assert without_repetition([mined, alone]) == [mined]


def test_forms_without_an_answer_change_the_question_or_the_passage_and_are_not_ranked() -> None:
    text = "In 1863 the Treaty of Bern was signed. It was a long treaty. It was kept for many years."
    groups = [Group("Who was first in Basel?", (Candidate(text, None, 1.0, (3, 7)),))] * 40
    changed = perturbed(groups, share=0.5, choice=random.Random(1))
    assert len(changed) == 20
    rest = "It was a long treaty. It was kept for many years."
    cut = [group for group in changed if group.candidates[0].text == rest]
    asked_otherwise = [group for group in changed if group.candidates[0].text == text]
    assert len(cut) + len(asked_otherwise) == 20
    assert cut
    assert {group.question for group in cut} == {"Who was first in Basel?"}
    assert "Who was first in Basel?" not in {group.question for group in asked_otherwise}
    for group in changed:
        (candidate,) = group.candidates
        assert (candidate.relevance, candidate.answer) == (None, NO_ANSWER)


def test_a_recipe_mines_before_it_trains_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setenv("BIFOCAL_MODELS", str(tmp_path / "models"))
    file = squad(tmp_path / "train.json", n_titles=8)
    asked = request(tmp_path, file)
    recipe = {
        "name": "towns",
        "task": "reader-reranker",
        "mine": [{"output": "towns.jsonl", "squad": [str(file)], "negatives": 2, "limit": 5}],
        "settings": {
            "base": asked.base,
            "paths": [str(file)],
            "max_steps": 2,
            "batch_tokens": 256,
            "precision": "fp32",
        },
    }
    (tmp_path / "towns.yaml").write_text(yaml.safe_dump(recipe))
    command = ["train", "--recipe", str(tmp_path / "towns.yaml"), "--output", str(tmp_path / "out")]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    groups = list(read_groups(tmp_path / "out" / "mined" / "towns.jsonl"))
    assert [len(group.candidates) for group in groups] == [3] * 5
    assert find_trained_model("towns", models=tmp_path / "models").task == "reader-reranker"
    assert "5 of 5 questions have 2 negatives" in first.output
    again = CliRunner().invoke(app, [*command, "--resume"])
    assert again.exit_code == 0, again.output
    assert "negatives" not in again.output
