"""What is fitted after training, as numbers and by `bifocal calibrate`."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from app.engine.combination import Combination
from app.engine.embedder import Embedder
from app.engine.model_files import find_bi_encoder
from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli import composition
from indexer.cli.commands import app
from indexer.training.joint.calibrating import (
    BY_FIRST_STAGE,
    BY_RERANKER,
    Candidates,
    fit_answer,
    fit_combination,
)
from tests.engine.tiny_trained import write_tiny_joint_model
from tests.indexer.judged import write_folder
from tests.substitutes import WordHashEmbedder

RANDOM = np.random.default_rng(1)


def test_the_answer_s_weights_are_those_that_made_the_data() -> None:
    margins, relevances = RANDOM.normal(0, 3, 20_000), RANDOM.normal(0, 2, 20_000)
    log_odds = 0.8 * margins + 0.3 * relevances - 0.5
    is_right = RANDOM.random(20_000) < 1 / (1 + np.exp(-log_odds))
    fitted = fit_answer(margins, relevances, is_right)
    assert fitted["span"] == pytest.approx(0.8, abs=0.05)
    assert fitted["relevance"] == pytest.approx(0.3, abs=0.05)
    assert fitted["bias"] == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize("is_right", [[True, True], [False, False]])
def test_one_kind_of_question_is_not_enough(is_right: list[bool]) -> None:
    with pytest.raises(InvalidInput, match="without one"):
        fit_answer(np.array([1.0, 2.0]), np.zeros(2), np.array(is_right))


def candidates(logits: list[float]) -> Candidates:
    """Three documents that the first stage ranks a, b, c."""
    return Candidates(["a", "b", "c"], np.array([0.9, 0.8, 0.1]), np.array(logits))


def test_a_reranker_that_knows_better_is_followed() -> None:
    of_set = {str(i): candidates([0.0, 5.0, -5.0]) for i in range(4)}
    fitted = fit_combination({"s": of_set}, {"s": {str(i): {"b": 1} for i in range(4)}})
    assert fitted.ndcg["s"][fitted.combination] == 1.0
    assert fitted.ndcg["s"][BY_FIRST_STAGE] < 1.0
    assert of_set["0"].ranked(fitted.combination)[0] == "b"


def test_a_reranker_that_errs_on_one_set_is_held_back_by_the_first_stage() -> None:
    errs = {"s": {"q": candidates([0.0, 0.0, 5.0])}, "t": {"q": candidates([0.0, 1.0, -5.0])}}
    fitted = fit_combination(errs, {"s": {"q": {"a": 1}}, "t": {"q": {"b": 1}}})
    assert errs["s"]["q"].ranked(fitted.combination)[0] == "a"
    assert fitted.ndcg["s"][BY_RERANKER] < fitted.ndcg["s"][BY_FIRST_STAGE]


def test_the_first_stage_keeps_the_weight_that_costs_at_most_half_of_the_gain() -> None:
    """Of two questions the reranker knows one by much, the other by little: only a low weight of the first
    stage gets both right, and a higher one the first alone, which is half of the gain."""
    of_set = {"much": candidates([-9.0, 9.0, -9.0]), "little": candidates([-0.5, 0.5, -9.0])}
    fitted = fit_combination({"s": of_set}, {"s": {"much": {"b": 1}, "little": {"b": 1}}})
    assert of_set["much"].ranked(fitted.combination)[0] == "b"
    assert of_set["little"].ranked(fitted.combination)[0] == "a"


def test_a_logit_without_measure_is_held_back_by_its_probability() -> None:
    """No weight of the logit itself serves both queries: 40 takes all before 1 gives anything."""
    of_set = {"far": candidates([2.0, -9.0, 40.0]), "near": candidates([-1.0, 1.0, -5.0])}
    fitted = fit_combination({"s": of_set}, {"s": {"far": {"a": 1}, "near": {"b": 1}}})
    assert fitted.combination.method == "logistic"
    assert fitted.ndcg["s"][fitted.combination] == 1.0


def test_the_first_stage_alone_is_what_gains_are_measured_against() -> None:
    of_query = candidates([9.0, -9.0, 0.0])
    assert of_query.ranked(Combination("linear", rerank=0.0, first_stage=1.0)) == ["a", "b", "c"]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    embedder = WordHashEmbedder(fingerprint=composition.encoder_files(Settings()).fingerprint)

    def load(_settings: Settings) -> Embedder:
        return embedder

    monkeypatch.setattr(composition, "load_embedder", load)
    monkeypatch.setenv("BIFOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BIFOCAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BIFOCAL_RUNTIME", "torch")
    packaged = find_bi_encoder("sentence-transformers/all-MiniLM-L6-v2").transformer
    return write_tiny_joint_model(tmp_path / "models", tokenizer_from=packaged)


def calibrate(folder: Path, *arguments: object, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["calibrate", str(folder), *(str(a) for a in arguments)])
    assert result.exit_code == exit_code, result.output
    return result.output


def test_a_model_s_description_gets_what_was_fitted(models: Path, tmp_path: Path) -> None:
    passages = [{"text": "Bern is old.", "answer": [0, 4]}, {"text": "Basel is new.", "answer": []}]
    lines = [json.dumps({"question": f"What is old {i}?", "passages": passages}) for i in range(6)]
    (tmp_path / "groups.jsonl").write_text("\n".join(lines))
    folder = write_folder(tmp_path / "animals")
    output = calibrate(models, "--answers", tmp_path / "groups.jsonl", "--ranking", f"{folder}:test")
    calibration = json.loads((models / "model.json").read_text())["calibration"]
    assert calibration["answer"].keys() == {"span", "relevance", "bias"}
    assert calibration["combination"]["method"] == "linear"
    assert "animals: nDCG@10" in output
    assert not list(models.glob("*.part"))


@pytest.mark.parametrize("arguments", [(), ("--ranking", "animals")])
def test_what_is_missing_is_said(models: Path, arguments: tuple[str, ...]) -> None:
    output = calibrate(models, *arguments, exit_code=1)
    assert "--answers FILE or --ranking DIR:SPLIT" in output or "as DIR:SPLIT" in output
