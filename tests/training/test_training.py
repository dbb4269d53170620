"""Every task on every kind of encoder: a few steps on tiny ones."""

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import pipeline

from app.errors import BadFile, Conflict, InvalidInput, StorageFull, TrainingFailed
from indexer.training.bases import find_base
from indexer.training.checkpoints import CHECKPOINTS, latest_checkpoint
from indexer.training.running import MODEL, Trained, TrainingInterrupted, train
from tests.training.asking import request
from tests.training.tiny_bases import (
    ARCHITECTURES,
    write_labelled,
    write_lines,
    write_positives,
    write_questions,
    write_scored,
    write_tagged,
)

WRITE = {
    "sequence": write_labelled,
    "token": write_tagged,
    "reader": write_questions,
    "bi-encoder": write_scored,
    "cross-encoder": write_scored,
}


def quickly(task: str, base: Path, folder: Path, **options: Any) -> Trained:
    data = WRITE[task](folder / "data")
    return train(request(task, base, data, folder / "out", **options))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("task", WRITE)
def test_a_task_trains_and_its_metrics_are_written(
    bases: dict[str, Path], tmp_path: Path, task: str, architecture: str
) -> None:
    trained = quickly(task, bases[architecture], tmp_path, freeze="none")
    result = json.loads((tmp_path / "out" / "results.json").read_text())
    assert result["n_steps"] == 2
    assert result["n_tokens"] > 0
    assert set(result["test"]) == set(result["validation"])
    assert -1.0 <= result["test"][trained.result.metric] <= 1.0
    assert "<polyline" in (tmp_path / "out" / "curve.svg").read_text()
    assert list((tmp_path / "out" / MODEL).glob("*.safetensors"))


def test_a_classifier_learns_and_answers_as_its_saved_form_does(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    trained = quickly("sequence", bases["bert"], tmp_path, max_steps=60)
    assert trained.result.test["accuracy"] == 1.0
    saved = pipeline("text-classification", model=str(tmp_path / "out" / MODEL))
    answers = saved(["the dog was quite fine", "the dog was quite awful"])
    assert [answer["label"] for answer in answers] == ["good", "bad"]


def test_a_tagger_learns_names(bases: dict[str, Path], tmp_path: Path) -> None:
    trained = quickly("token", bases["distilbert"], tmp_path, max_steps=60, context=True)
    assert trained.result.test["f1"] == 1.0
    assert trained.result.test["f1_LOC"] == 1.0


def test_a_reader_learns_spans_and_when_there_is_none(bases: dict[str, Path], tmp_path: Path) -> None:
    trained = quickly("reader", bases["bert"], tmp_path, max_steps=120)
    assert trained.result.test["f1"] >= 0.75
    assert trained.result.test["answerable_auroc"] == 1.0


def test_encoders_of_pairs_learn_scores_and_load_again(bases: dict[str, Path], tmp_path: Path) -> None:
    bi_encoder = quickly("bi-encoder", bases["bert"], tmp_path / "bi", max_steps=25)
    assert bi_encoder.result.test["spearman"] > 0.3
    vectors = SentenceTransformer(str(tmp_path / "bi" / "out" / MODEL)).encode(["the cat sat", "a cat sat"])
    assert vectors.shape == (2, 32)
    quickly("cross-encoder", bases["bert"], tmp_path / "cross")
    scores = CrossEncoder(str(tmp_path / "cross" / "out" / MODEL)).predict([("the cat sat", "a cat sat")])
    assert scores.shape == (1,)


@pytest.mark.parametrize("task", ["bi-encoder", "cross-encoder"])
def test_anchors_are_trained_against_mined_negatives(
    bases: dict[str, Path], tmp_path: Path, task: str
) -> None:
    data = write_positives(tmp_path / "data")
    trained = train(request(task, bases["bert"], data, tmp_path / "out", negatives=2))
    assert trained.result.metric == "mrr@10"
    assert 0.0 < trained.result.validation["mrr@10"] <= 1.0
    rows = trained.prepared.rows
    assert len(rows.column_names) == 4 if task == "bi-encoder" else len(rows) == 8 * 3


def test_bf16_and_accumulated_batches_train_too(bases: dict[str, Path], tmp_path: Path) -> None:
    trained = quickly("sequence", bases["bert"], tmp_path, precision="bf16", accumulate=2, batch_tokens=64)
    assert trained.result.n_steps == 2
    assert all(parameter.dtype == torch.float32 for parameter in trained.module.parameters())


def test_the_training_stops_early_without_improvement(bases: dict[str, Path], tmp_path: Path) -> None:
    trained = quickly(
        "sequence", bases["bert"], tmp_path, max_steps=-1, epochs=50, patience=2, learning_rate=0.0
    )
    assert trained.result.n_steps < 50 * 3 / 2


def test_the_same_seed_gives_the_same_model_and_another_does_not(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    def weights(name: str, seed: int) -> torch.Tensor:
        module = quickly("sequence", bases["bert"], tmp_path / name, seed=seed).module
        weight: torch.Tensor = module.classifier.weight.detach()
        return weight

    assert torch.equal(weights("a", 1), weights("b", 1))
    assert not torch.equal(weights("c", 1), weights("d", 2))


def test_the_log_says_loss_speed_and_time_left(bases: dict[str, Path], tmp_path: Path) -> None:
    shown: list[dict[str, Any]] = []
    train(request("sequence", bases["bert"], write_labelled(tmp_path / "d"), tmp_path / "out"), shown.append)
    logged = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert logged == shown
    assert [line["step"] for line in logged if "loss" in line] == [1, 2]
    assert {"loss", "learning_rate", "tokens_per_s", "left_s", "n_steps"} <= logged[0].keys()
    assert any("eval_accuracy" in line for line in logged)


def test_a_text_longer_than_the_model_is_refused_unless_it_may_be_cut(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    data = write_labelled(tmp_path / "data")
    rows = [{"text": "good " * 100, "label": "good"}, {"text": "bad " * 2, "label": "bad"}] * 2
    path = write_lines(data / "train.jsonl", rows)
    with pytest.raises(BadFile, match=rf"{path}, line 1: the text has 102 tokens, the model takes 48"):
        train(request("sequence", bases["bert"], data, tmp_path / "out"))
    assert (
        train(request("sequence", bases["bert"], data, tmp_path / "out", truncate=True)).result.n_steps == 2
    )


def test_a_sentence_longer_than_the_model_keeps_every_tag(bases: dict[str, Path], tmp_path: Path) -> None:
    data = write_tagged(tmp_path / "data")
    words = "".join(f"{word}\tB-PER\n" for word in ["anna"] * 150)
    (data / "train.conll").write_text(words + "oslo\tB-LOC\n" * 2, encoding="utf-8")
    rows = train(request("token", bases["bert"], data, tmp_path / "out")).prepared.rows
    assert max(len(row["input_ids"]) for row in rows) == 48
    assert sum(label != -100 for row in rows for label in row["labels"]) == 152


def test_a_question_that_leaves_no_room_is_refused(bases: dict[str, Path], tmp_path: Path) -> None:
    data = write_questions(tmp_path / "data")
    content = json.loads((data / "train.json").read_text())
    content["data"][0]["paragraphs"][0]["qas"][0]["question"] = "where " * 40
    (data / "train.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BadFile, match=r"train\.json, line 1: the question 'annaoslo' has 40 tokens"):
        train(request("reader", bases["bert"], data, tmp_path / "out"))


def test_a_bi_encoder_has_nothing_to_learn_with_a_frozen_encoder(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="a bi-encoder has no head"):
        quickly("bi-encoder", bases["bert"], tmp_path, freeze="encoder")


# Interrupted and failed trainings


def test_a_loss_that_is_no_number_ends_the_training_with_its_step(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(TrainingFailed, match=r"the loss became nan at step \d+: the learning rate of 1e\+30"):
        quickly("sequence", bases["bert"], tmp_path, max_steps=20, learning_rate=1e30, warmup=0.0)


@contextmanager
def signalled_at(step: int) -> Iterator[Any]:
    """A `show` that sends this process Ctrl-C after that step."""

    def show(line: dict[str, Any]) -> None:
        if line["step"] == step and "loss" in line:
            os.kill(os.getpid(), signal.SIGINT)

    yield show


def test_an_interrupted_training_goes_on_to_the_same_model(bases: dict[str, Path], tmp_path: Path) -> None:
    """In the middle of an epoch: the batches and the dropout after it are those of the straight one."""
    data = write_labelled(tmp_path / "data")
    options = {"max_steps": 12, "batch_tokens": 64, "learning_rate": 1e-3}
    straight = train(request("sequence", bases["bert"], data, tmp_path / "straight", **options))
    broken = request("sequence", bases["bert"], data, tmp_path / "broken", **options)
    with (
        signalled_at(4) as show,
        pytest.raises(TrainingInterrupted, match=r"interrupted after step \d of 12; repeat .* --resume"),
    ):
        train(broken, show)
    resumed = train(request("sequence", bases["bert"], data, tmp_path / "broken", **options, resume=True))
    assert resumed.result.n_steps == 12
    for name, parameter in straight.module.state_dict().items():
        assert torch.equal(parameter, resumed.module.state_dict()[name]), name
    steps = [
        json.loads(line)["step"] for line in (tmp_path / "broken" / "log.jsonl").read_text().splitlines()
    ]
    assert steps == sorted(steps)


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    for step, state in ((5, "{}"), (10, "{"), (15, None)):
        folder = tmp_path / f"checkpoint-{step}"
        write_lines(folder / "model.safetensors", [])
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoint-5"
    assert latest_checkpoint(tmp_path / "nothing") is None


def test_an_output_with_a_training_is_not_written_over(bases: dict[str, Path], tmp_path: Path) -> None:
    quickly("sequence", bases["bert"], tmp_path)
    with pytest.raises(Conflict, match="holds a training; go on with --resume"):
        quickly("sequence", bases["bert"], tmp_path)
    with pytest.raises(Conflict, match="was begun with another seed"):
        quickly("sequence", bases["bert"], tmp_path, resume=True, seed=9)


def test_a_full_disk_is_said_with_what_was_kept(bases: dict[str, Path], tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: both fail in the same write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(StorageFull, match=r"no space to write into .*checkpoints; nothing was kept"):
            quickly("sequence", bases["bert"], tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    resumed = quickly("sequence", bases["bert"], tmp_path, resume=True)
    assert resumed.result.n_steps == 2


def test_checkpoints_come_by_the_clock_too(bases: dict[str, Path], tmp_path: Path) -> None:
    data = write_labelled(tmp_path / "data")
    asked = request(
        "sequence", bases["bert"], data, tmp_path / "out", max_steps=3, batch_tokens=64, checkpoint_s=0.0
    )
    steps: list[int] = []

    def show(_line: dict[str, Any]) -> None:
        found = latest_checkpoint(tmp_path / "out" / CHECKPOINTS)
        steps.append(int(found.name.rpartition("-")[2]) if found else 0)

    train(asked, show)
    assert {1, 2} <= set(steps)


def test_a_base_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"cannot be read|not on this machine|no such folder"):
        find_base(str(tmp_path))
