"""Tagger and fine-tuned classifiers, compared with transformers' pipelines on tiny models in float32."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import pipeline

from app.engine.text_models import TextModels, load_text_models
from app.errors import ModelUnavailable, TextTooLong
from app.services.fine_tuned import classify_with
from app.settings import Settings
from tests.engine.tiny_trained import MAX_TOKENS, write_tiny_published, write_tiny_trained
from tests.real_data import real_file

TEXTS = [
    "Angela Merkel met Emmanuel Macron in Strasbourg on Tuesday.",
    "The World Health Organization is based in Geneva, Switzerland.",
    "electroencephalography of unbelievably mischaracterised neurophysiologists",
    "IBM's shares rose 3.5% after Lou Gerstner's announcement!",
    "nothing here",
    "a",
    "No. 10 Downing St., London SW1A 2AA",
]
LONG = " ".join(f"{text} Then {i} more." for i, text in enumerate(TEXTS * 12))
LABELS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}


@pytest.fixture(scope="module")
def tagger_folder(tmp_path_factory: pytest.TempPathFactory, packaged_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("tagger")
    return write_tiny_published(
        folder,
        "BertForTokenClassification",
        tokenizer_from=packaged_folder,
        id2label=LABELS,
        label2id={label: i for i, label in LABELS.items()},
    )


@pytest.fixture(scope="module")
def sequence_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def write(name: str, packaged_folder: Path, **config: Any) -> Path:
        folder = tmp_path_factory.mktemp("sequence") / name
        return write_tiny_published(
            folder, "BertForSequenceClassification", tokenizer_from=packaged_folder, **config
        )

    return write


@contextmanager
def loaded(**fields: Any) -> Iterator[TextModels]:
    models = load_text_models(Settings(runtime="torch", models=Path("nowhere"), **fields))
    try:
        yield models
    finally:
        models.close()


@pytest.fixture(scope="module")
def tagging(tagger_folder: Path) -> Iterator[TextModels]:
    with loaded(tagger=str(tagger_folder)) as models:
        yield models


@pytest.fixture(scope="module")
def real_texts() -> dict[str, list[str]]:
    """200 sentences of CoNLL-2003, words joined by blanks, and 200 of SST-2."""
    conll = real_file("ner/conll2003/valid.conll")
    sst2 = real_file("classification/sst2-sentences/dev.jsonl")
    sentences = [each.splitlines() for each in conll.read_text(encoding="utf-8").split("\n\n")[:200]]
    reviews = sst2.read_text(encoding="utf-8").splitlines()[:200]
    return {
        "entities": [" ".join(line.split("\t")[0] for line in sentence) for sentence in sentences],
        "texts": [json.loads(review)["text"] for review in reviews],
    }


def test_entities_of_real_sentences_are_those_of_the_pipeline(
    tagging: TextModels, tagger_folder: Path, real_texts: dict[str, list[str]]
) -> None:
    assert tagging.tagger is not None
    reference: Any = pipeline("token-classification", model=str(tagger_folder), aggregation_strategy="first")
    texts = [text for text in real_texts["entities"] if len(text.split()) < MAX_TOKENS // 3]
    assert len(texts) > 150
    for text, tagged in zip(texts, tagging.tagger.tag(texts, aggregation="first"), strict=True):
        expected = [(each["entity_group"], each["start"], each["end"]) for each in reference(text)]
        assert [(each.entity_group, each.start, each.end) for each in tagged.entities] == expected


def test_scores_of_real_texts_are_those_of_the_pipeline(
    sequence_folder: Callable[..., Path], packaged_folder: Path, real_texts: dict[str, list[str]]
) -> None:
    folder = sequence_folder("review", packaged_folder, num_labels=3)
    reference: Any = pipeline("text-classification", model=str(folder), top_k=None)
    with loaded(sequence_models=(str(folder),)) as models:
        found = classify_with(models.sequence["review"], real_texts["texts"], top_k=10, truncate=True)
    for result, expected in zip(
        found.results, reference(real_texts["texts"], truncation=True, max_length=MAX_TOKENS), strict=True
    ):
        scores = {each["label"]: each["score"] for each in expected}
        assert {each.label: each.score for each in result.labels} == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("aggregation", ["first", "average", "max"])
def test_entities_are_those_of_the_pipeline(
    tagging: TextModels, tagger_folder: Path, aggregation: Any
) -> None:
    assert tagging.tagger is not None
    reference: Any = pipeline(
        "token-classification", model=str(tagger_folder), aggregation_strategy=aggregation
    )
    for text, tagged in zip(TEXTS, tagging.tagger.tag(TEXTS, aggregation=aggregation), strict=True):
        expected = reference(text)
        assert [(e.entity_group, e.start, e.end) for e in tagged.entities] == [
            (e["entity_group"], e["start"], e["end"]) for e in expected
        ]
        scores = [e.score for e in tagged.entities]
        np.testing.assert_allclose(scores, [e["score"] for e in expected], atol=1e-4)


def test_an_entity_is_quoted_from_the_text(tagging: TextModels) -> None:
    assert tagging.tagger is not None
    (tagged,) = tagging.tagger.tag([LONG])
    assert tagged.n_windows > 5
    assert tagged.entities
    end = 0
    for entity in tagged.entities:
        assert LONG[entity.start : entity.end] == entity.word
        assert entity.start >= end
        end = entity.end


def test_every_word_of_a_long_text_is_tagged_once_from_a_window_around_it(tagging: TextModels) -> None:
    """Far from the borders of windows: as a window of its own would tag it."""
    assert tagging.tagger is not None
    (tagged,) = tagging.tagger.tag([LONG])
    covered = np.zeros(len(LONG), dtype=int)
    for entity in tagged.entities:
        covered[entity.start : entity.end] += 1
    assert covered.max() == 1
    assert tagged.n_tokens > 5 * MAX_TOKENS


def test_a_batch_is_tagged_as_its_texts_alone(tagging: TextModels) -> None:
    assert tagging.tagger is not None
    together = tagging.tagger.tag([*TEXTS, LONG])
    for text, tagged in zip([*TEXTS, LONG], together, strict=True):
        (alone,) = tagging.tagger.tag([text])
        places = [(e.entity_group, e.start, e.end) for e in alone.entities]
        assert places == [(e.entity_group, e.start, e.end) for e in tagged.entities]


@pytest.mark.parametrize(
    "text", ["", " ", "a\0b", "\u202eabc\u202c", "👩‍👩‍👧 x", "e\u0301te\u0301", "y" * 100_000]
)
def test_odd_texts_are_tagged_or_have_no_entities(tagging: TextModels, text: str) -> None:
    assert tagging.tagger is not None
    (tagged,) = tagging.tagger.tag([text])
    assert all(text[e.start : e.end] == e.word for e in tagged.entities)


def test_a_published_tagger_may_begin_an_entity_with_any_tag(tagging: TextModels) -> None:
    """Whether its tags are IOB1, IOB2 or none of these, its files do not say."""
    assert tagging.tagger is not None
    words = [" ".join(re.findall("[a-zA-Z]+", text)) for text in TEXTS]
    for first, whole in zip(
        tagging.tagger.tag(words, aggregation="first"), tagging.tagger.tag(words), strict=True
    ):
        assert first.entities == whole.entities


@pytest.mark.parametrize("reads_capitals", [True, False])
def test_capitals_count_for_a_tagger_that_was_taught_them(
    tmp_path: Path, packaged_folder: Path, reads_capitals: bool
) -> None:
    write_tiny_trained(
        tmp_path / "models",
        "names",
        task="token",
        architecture="BertForTokenClassification",
        tokenizer_from=packaged_folder,
        labels=tuple(LABELS.values()),
        reads_capitals=reads_capitals,
    )
    settings = Settings(runtime="torch", models=tmp_path / "models", tagger="names")
    models = load_text_models(settings)
    assert models.tagger is not None
    small, large = (
        [(e.entity_group, round(e.score, 4)) for e in tagged.entities]
        for tagged in models.tagger.tag([LONG.lower(), LONG], aggregation="first")
    )
    assert (small != large) == reads_capitals
    models.close()


@pytest.mark.parametrize(
    "config",
    [{"num_labels": 3}, {"num_labels": 3, "problem_type": "multi_label_classification"}, {"num_labels": 1}],
)
def test_scores_of_texts_are_those_of_the_pipeline(
    sequence_folder: Callable[..., Path], packaged_folder: Path, config: dict[str, Any]
) -> None:
    folder = sequence_folder("mood", packaged_folder, **config)
    reference: Any = pipeline("text-classification", model=str(folder), top_k=None)
    with loaded(sequence_models=(str(folder),)) as models:
        found = classify_with(models.sequence["mood"], TEXTS, top_k=10, truncate=True)
    for text, result in zip(TEXTS, found.results, strict=True):
        expected = {each["label"]: each["score"] for each in reference(text)[0]}
        assert {each.label: each.score for each in result.labels} == pytest.approx(expected, abs=1e-5)


def test_a_trained_model_has_its_labels_and_temperature(tmp_path: Path, packaged_folder: Path) -> None:
    for name, calibration in (("plain", None), ("cooled", {"temperature": 2.0})):
        write_tiny_trained(
            tmp_path / "models",
            name,
            task="sequence",
            architecture="BertForSequenceClassification",
            tokenizer_from=packaged_folder,
            labels=("bad", "good"),
            calibration=calibration,
        )
    settings = Settings(runtime="torch", models=tmp_path / "models", sequence_models=("plain", "cooled"))
    models = load_text_models(settings)
    plain, cooled = (models.sequence[name].classify(TEXTS, truncate=True) for name in ("plain", "cooled"))
    assert models.sequence["plain"].labels == ("bad", "good")
    np.testing.assert_allclose(cooled.logits, plain.logits / 2, atol=1e-5)
    models.close()


def test_a_text_beyond_the_limit_is_cut_and_told_or_refused(
    sequence_folder: Callable[..., Path], packaged_folder: Path
) -> None:
    with loaded(sequence_models=(str(sequence_folder("short", packaged_folder)),)) as models:
        model = models.sequence["short"]
        read = model.classify(["a", LONG], truncate=True)
        assert read.truncated.tolist() == [False, True]
        assert read.n_tokens[1] > MAX_TOKENS
        with pytest.raises(TextTooLong):
            model.classify(["a", LONG], truncate=False)
        assert model.classify([], truncate=True).logits.shape == (0, 2)


def test_a_model_of_another_kind_cannot_take_the_role(tagger_folder: Path) -> None:
    with pytest.raises(
        ModelUnavailable, match="BertForTokenClassification, not a model ForSequenceClassification"
    ):
        load_text_models(Settings(runtime="torch", sequence_models=(str(tagger_folder),)))


def test_without_settings_and_shipped_models_the_roles_are_free() -> None:
    with loaded() as models:
        assert (models.tagger, dict(models.sequence), models.fault) == (None, {}, None)
        assert list(models.by_role) == []
