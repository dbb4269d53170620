"""Rerankers and readers of small models in float32, against sentence-transformers and transformers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sentence_transformers import CrossEncoder as ReferenceCrossEncoder

from app.engine.models import load_tokenizer
from app.engine.pair_runner import PairRunner
from app.engine.pairs import PairEncoder, TitledText
from app.engine.reading_models import ReadingModels, load_reading_models
from app.engine.roles import models_of
from app.engine.runner import Runner
from app.engine.span_reader import SpanReader
from app.errors import BadVector, ModelUnavailable
from app.settings import Settings
from indexer.calibration import calibration_pairs
from tests.engine.qa_pipeline import QuestionAnswering
from tests.engine.tiny_trained import write_tiny_joint_model, write_tiny_published

TOLERANCE = 2e-4
PAIRS = calibration_pairs()[:40]


@contextmanager
def loaded(**names: Any) -> Iterator[ReadingModels]:
    models = load_reading_models(Settings(**{"models": Path("nowhere"), "runtime": "torch", **names}))
    try:
        yield models
    finally:
        models.close()


def cross_encoder(folder: Path, tokenizer_from: Path, **config: Any) -> str:
    published = write_tiny_published(
        folder, "BertForSequenceClassification", tokenizer_from=tokenizer_from, **config
    )
    return str(published)


def short(text: str) -> str:
    """Fits into one window."""
    return " ".join(text.split()[:20])


@pytest.mark.parametrize("activation", [None, "torch.nn.modules.linear.Identity"])
def test_relevance_of_one_label_is_that_of_sentence_transformers(
    activation: str | None, packaged_folder: Path, tmp_path: Path
) -> None:
    named = {} if activation is None else {"sentence_transformers": {"activation_fn": activation}}
    name = cross_encoder(tmp_path / "one", packaged_folder, num_labels=1, **named)
    reference = ReferenceCrossEncoder(name, device="cpu", local_files_only=True)
    question = "what is a river"
    passages = [short(pair.text) for pair in PAIRS]
    with loaded(reranker=name) as models:
        assert models.reranker is not None
        assert models.reader is None
        found = models.reranker.rerank(question, [TitledText(text) for text in passages])
        shown = [models.reranker.probability(logit) for logit in found.logits.tolist()]
    pairs = [(question, text) for text in passages]
    raw = reference.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)
    np.testing.assert_allclose(found.logits, raw, atol=TOLERANCE)
    if activation is None:
        np.testing.assert_allclose(
            np.array(shown, np.float64), reference.predict(pairs, show_progress_bar=False), atol=TOLERANCE
        )
    else:
        assert set(shown) == {None}


@pytest.mark.parametrize(
    ("labels", "positive"), [({0: "no", 1: "yes"}, 1), ({0: "relevant", 1: "other"}, 0), (None, 1)]
)
def test_of_two_labels_the_one_that_means_relevant_counts(
    labels: dict[int, str] | None, positive: int, packaged_folder: Path, tmp_path: Path
) -> None:
    named: dict[str, Any] = {} if labels is None else {"id2label": labels}
    name = cross_encoder(tmp_path / "two", packaged_folder, num_labels=2, **named)
    reference = ReferenceCrossEncoder(name, device="cpu", local_files_only=True)
    with loaded(reranker=name) as models:
        assert models.reranker is not None
        (logit,) = models.reranker.rerank("who", [TitledText("a river")]).logits.tolist()
        shown = models.reranker.probability(logit)
    (expected,) = reference.predict([("who", "a river")], apply_softmax=True, show_progress_bar=False)
    assert shown == pytest.approx(float(expected[positive]), abs=TOLERANCE)


def test_a_model_of_three_labels_is_no_reranker(packaged_folder: Path, tmp_path: Path) -> None:
    name = cross_encoder(tmp_path / "three", packaged_folder, num_labels=3)
    with pytest.raises(ModelUnavailable, match=r"has 3 labels .* a reranker has one or two"):
        load_reading_models(Settings(reranker=name, models=Path("nowhere"), runtime="torch"))


def test_a_model_of_another_kind_cannot_take_a_role(packaged_folder: Path, tmp_path: Path) -> None:
    name = cross_encoder(tmp_path / "one", packaged_folder, num_labels=1)
    with pytest.raises(
        ModelUnavailable, match=r"cannot be the reader; .* can: JointModel, ForQuestionAnswer"
    ):
        load_reading_models(Settings(reader=name, models=Path("nowhere"), runtime="torch"))


def test_a_long_passage_counts_as_its_most_relevant_window(packaged_folder: Path, tmp_path: Path) -> None:
    name = cross_encoder(tmp_path / "one", packaged_folder, num_labels=1)
    parts = ["river bridge " * 30, "castle mountain " * 30]
    with loaded(reranker=name) as models:
        assert models.reranker is not None
        whole = models.reranker.rerank("who", [TitledText(" ".join(parts))])
        alone = models.reranker.rerank("who", [TitledText(part[:300]) for part in parts])
    assert whole.logits[0] >= alone.logits.min()
    assert not whole.truncated[0]


def test_more_than_four_windows_are_not_read_and_it_is_told(packaged_folder: Path, tmp_path: Path) -> None:
    name = cross_encoder(tmp_path / "one", packaged_folder, num_labels=1)
    with loaded(reranker=name) as models:
        assert models.reranker is not None
        found = models.reranker.rerank("word " * 100, [TitledText("word " * 800), TitledText("word")])
    assert found.truncated.tolist() == [True, False]
    assert found.question.is_truncated
    assert found.logits.dtype == np.float64


def test_a_published_reader_answers_as_with_transformers(packaged_folder: Path, tmp_path: Path) -> None:
    folder = write_tiny_published(tmp_path / "qa", "BertForQuestionAnswering", tokenizer_from=packaged_folder)
    reference = QuestionAnswering(folder)
    texts = [short(pair.text) for pair in PAIRS]
    questions = [" ".join(pair.question.split()[:12]) for pair in PAIRS]
    with loaded(reader=str(folder)) as models:
        assert models.reader is not None
        for question, text in zip(questions, texts, strict=True):
            (reading,) = models.reader.read(question, [TitledText(text)]).passages
            assert reading is not None
            assert reading.relevance is None
            start, end, probability = reference.answer(question, text)
            best = reading.spans[0]
            assert (best.start, best.end) == (start, end)
            assert best.probability == pytest.approx(probability, abs=TOLERANCE)


@pytest.fixture(scope="module")
def joint(packaged_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadingModels]:
    models = tmp_path_factory.mktemp("joint") / "models"
    write_tiny_joint_model(
        models,
        tokenizer_from=packaged_folder,
        calibration={
            "answer": {"span": 0.5, "relevance": 0.25, "bias": -1.0},
            "combination": {"method": "standard", "rerank": 0.6, "first_stage": 0.4},
        },
    )
    with loaded(models=models) as found:
        yield found


def test_a_joint_model_may_rank_by_the_beginning_of_a_passage(packaged_folder: Path, tmp_path: Path) -> None:
    models = tmp_path / "models"
    write_tiny_joint_model(
        models,
        tokenizer_from=packaged_folder,
        calibration={"rerank_tokens": 12, "rerank_by_default": False},
    )
    begin, rest = "The river Aare flows through the old town of Bern", "and on to the Rhine. " * 30
    with loaded(models=models) as found:
        assert found.reranker is not None
        assert found.is_joint
        assert not found.rank_as_they_read
        assert not found.rerank_by_default
        logits = [
            float(found.reranker.rerank("what flows", [TitledText(text)]).logits[0])
            for text in (f"{begin} {rest}", f"{begin} {rest} More.", "Something else flows. " + rest)
        ]
        truncated = found.reranker.rerank("what flows", [TitledText(f"{begin} {rest}")]).truncated
    assert logits[0] == pytest.approx(logits[1], abs=TOLERANCE)
    assert logits[0] != pytest.approx(logits[2], abs=TOLERANCE)
    assert truncated.tolist() == [True]


def test_the_joint_model_takes_both_roles_and_one_pass_gives_both(joint: ReadingModels) -> None:
    assert joint.is_joint
    assert joint.rerank_by_default
    assert joint.reranker is not None
    assert joint.reader is not None
    passages = [TitledText(pair.text, pair.title) for pair in PAIRS[:6]]
    readings = joint.reader.read("what is a river", passages, max_windows=4).passages
    relevances = joint.reranker.rerank("what is a river", passages).logits
    assert [each.relevance for each in readings if each] == pytest.approx(relevances.tolist(), abs=TOLERANCE)


def test_weights_come_from_the_calibration_of_the_model(joint: ReadingModels) -> None:
    assert joint.reader is not None
    assert joint.reranker is not None
    (reading,) = joint.reader.read("who", [TitledText("A river runs.")]).passages
    assert reading is not None
    (span,) = reading.spans
    assert joint.reader.answer_logit(span, 2.0) == pytest.approx(0.5 * span.margin + 0.25 * 2.0 - 1.0)
    assert joint.reranker.combination.method == "standard"


@pytest.mark.parametrize("question", ["the of and", "?!", "😀", "\0 x", "\ud800 y", "word " * 500])
@pytest.mark.parametrize("text", ["", " \n", "😀", "\u0301", "a" * 100_000, "日本語テキスト", "x\0y"])
def test_odd_questions_and_texts_have_a_defined_reading(
    joint: ReadingModels, question: str, text: str
) -> None:
    assert joint.reader is not None
    readings = joint.reader.read(question, [TitledText(text), TitledText("A river.")]).passages
    assert all(reading is not None and np.isfinite(reading.relevance or 0) for reading in readings)
    empty = readings[0]
    assert empty is not None
    assert bool(empty.spans) == any(not c.isspace() and c != "\u0301" for c in text)


def test_no_passages_have_no_readings(joint: ReadingModels) -> None:
    assert joint.reader is not None
    assert joint.reranker is not None
    assert joint.reader.read("who", []).passages == []
    assert joint.reranker.rerank("who", []).logits.shape == (0,)


def test_a_passage_is_read_alike_alone_and_among_others(joint: ReadingModels) -> None:
    assert joint.reader is not None
    passages: Sequence[TitledText] = [TitledText(pair.text, pair.title) for pair in PAIRS[:12]]
    together = joint.reader.read("what is a river", passages).passages
    for passage, expected in zip(passages, together, strict=True):
        (alone,) = joint.reader.read("what is a river", [passage]).passages
        assert alone is not None
        assert expected is not None
        assert alone.relevance == pytest.approx(expected.relevance, abs=TOLERANCE)
        assert [(s.start, s.end) for s in alone.spans] == [(s.start, s.end) for s in expected.spans]


class DivergedNetwork:
    runtime = "diverged"
    n_lanes = 1

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        logits = np.zeros(inputs[0].shape, np.float32)
        logits[-1, 1] = np.nan
        return [np.zeros(len(logits), np.float32), logits, logits]


def test_numbers_that_are_not_finite_are_refused_with_their_passage(
    packaged_folder: Path, tmp_path: Path
) -> None:
    write_tiny_joint_model(tmp_path / "models", tokenizer_from=packaged_folder)
    (files,) = models_of("reader", Settings(models=tmp_path / "models"))
    runner = Runner(
        DivergedNetwork,
        files.outputs,
        runtime="diverged",
        pad_id=0,
        max_tokens=96,
        has_segments=True,
        settings=Settings(),
    )
    reader = SpanReader(files, PairRunner(runner, PairEncoder(load_tokenizer(files), max_tokens=96)))
    try:
        with pytest.raises(BadVector, match="for passage 1 that are not finite"):
            reader.read("who", [TitledText("A river."), TitledText("A bridge.")])
    finally:
        reader.close()


def test_without_any_model_the_roles_are_empty() -> None:
    with loaded() as models:
        assert (models.reranker, models.reader, models.is_joint) == (None, None, False)
