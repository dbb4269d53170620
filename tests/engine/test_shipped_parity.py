"""The models that ship, in float32, against transformers' models and pipelines with the same weights, on 200
real inputs each.

Where the two differ on purpose, and so are not compared:

- A pipeline truncates a long text (classification), refuses it (entities), or reads it in windows and takes
  the greatest product of probabilities of any window (answers). Ours read entities and answers in windows to
  the end, so that every token counts once, and weigh an answer against "no answer" in its own window. The
  inputs here fit into one.
- A pipeline's words end at every punctuation mark. `aggregation: "word"`, the default, has words as people
  write them: it is compared with the tags of whole words, as training has them, and `first` with the pipeline
  of this name.
- A pipeline's answers have at most 15 tokens unless asked otherwise, ours 30, like the reader in BERT's
  repository; the reference is asked for 30. Ours grow to whole graphemes, which these texts do not need.
- Scores of a fine-tuned classifier are calibrated by a temperature, which the reference gets in its weights.
- An answer's `score` is calibrated over spans and relevance; what is compared is `Span.probability`.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoTokenizer, pipeline

from app.engine.capitals import has_capital
from app.engine.entities import iob2_follows, likeliest_path
from app.engine.pairs import TitledText
from app.engine.reading_models import ReadingModels, load_reading_models
from app.engine.roles import names_of
from app.engine.text_models import TextModels, load_text_models
from app.engine.trained_models import find_trained_model
from app.engine.whole_words import whole_words
from app.services.fine_tuned import classify_with
from app.settings import Settings
from indexer.evaluation.task_examples import (
    ContextQuestion,
    TaggedSentence,
    read_labelled,
    read_squad,
    read_tagged,
)
from indexer.evaluation.task_judging import GivenEntity, tags_of
from tests.engine.qa_pipeline import QuestionAnswering
from tests.engine.tiny_trained import TOKENIZER_FILES
from tests.real_data import real_file

N_INPUTS = 200
TOLERANCE = 1e-3
"""Of probabilities: the two sum in another order."""
MAX_CONTEXT_CHARS = 350
SETTINGS = Settings(runtime="torch")


def published(
    name: str,
    architecture: str,
    folder: Path,
    *,
    base: Path,
    renamed: Mapping[str, str] | None = None,
    head_scale: float = 1.0,
) -> Path:
    """A Hugging Face folder of a shipped model: the base with its stored tensors laid over it.

    Args:
        renamed: beginnings of names of tensors, ours to theirs; what is not among them is left out.
        head_scale: of what is not of the encoder.
    """
    files = find_trained_model(name, models=SETTINGS.models)
    labels = {"id2label": dict(enumerate(files.labels))} if files.labels else {}
    module = getattr(transformers, architecture).from_pretrained(base, local_files_only=True, **labels)
    tensors = {}
    for own, tensor in load_file(files.weights).items():
        for ours, theirs in (renamed or {"": ""}).items():
            if own.startswith(ours):
                scale = 1.0 if own.startswith(("bert.", "encoder.")) else head_scale
                tensors[theirs + own.removeprefix(ours)] = scale * tensor.float()
    assert not module.load_state_dict(tensors, strict=False).unexpected_keys
    module.save_pretrained(folder)
    for file in TOKENIZER_FILES:
        shutil.copy(base / file, folder / file)
    return folder


def shipped(role: Any) -> str:
    names = names_of(role, SETTINGS)
    if not names:
        pytest.skip(f"no {role} ships in {SETTINGS.models}")
    return names[0]


@pytest.fixture(scope="module")
def texts() -> Iterator[TextModels]:
    models = load_text_models(SETTINGS)
    yield models
    models.close()


@pytest.fixture(scope="module")
def reading() -> Iterator[ReadingModels]:
    models = load_reading_models(SETTINGS)
    yield models
    models.close()


@pytest.fixture(scope="module")
def sentences() -> list[TaggedSentence]:
    found = read_tagged(real_file("ner/conll2003/valid.conll"))
    found = [each for each in found if 3 < len(each.tokens) < 60]
    return found[:: len(found) // N_INPUTS][:N_INPUTS]


@pytest.fixture(scope="module")
def tagger_folder(packaged_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagger")
    return published(shipped("tagger"), "BertForTokenClassification", folder, base=packaged_folder)


def test_entities_are_those_of_the_pipeline(
    texts: TextModels, sentences: list[TaggedSentence], tagger_folder: Path
) -> None:
    assert texts.tagger is not None
    reference: Any = pipeline(
        "token-classification",
        model=str(tagger_folder),
        aggregation_strategy="first",
        pipeline_class=ToldCapitals if reads_capitals() else None,
    )
    asked = [" ".join(sentence.tokens) for sentence in sentences]
    n_entities = 0
    tagged = texts.tagger.tag(asked, aggregation="first")
    for ours, theirs in zip(tagged, reference(asked), strict=True):
        assert [(e.entity_group, e.start, e.end) for e in ours.entities] == [
            (e["entity_group"], e["start"], e["end"]) for e in theirs
        ]
        np.testing.assert_allclose(
            [e.score for e in ours.entities], [e["score"] for e in theirs], atol=TOLERANCE
        )
        n_entities += len(theirs)
    assert n_entities >= N_INPUTS


def test_whole_words_have_the_tags_that_training_reads(
    texts: TextModels, sentences: list[TaggedSentence], tagger_folder: Path
) -> None:
    """In sentences whose words, as the data has them, are whole words here, too: about three of four."""
    assert texts.tagger is not None
    tokenizer = AutoTokenizer.from_pretrained(tagger_folder, local_files_only=True)
    module: Any = transformers.AutoModelForTokenClassification.from_pretrained(
        tagger_folder, local_files_only=True
    ).eval()
    n_compared = 0
    for sentence in sentences:
        text = " ".join(sentence.tokens)
        encoded = tokenizer(
            list(sentence.tokens), is_split_into_words=True, return_offsets_mapping=True, return_tensors="pt"
        )
        words = encoded.word_ids(0)
        if not are_whole(text, sentence, tokenizer):
            continue
        offsets = encoded.pop("offset_mapping")[0].tolist()
        if reads_capitals():
            pieces = [
                "" if word is None else sentence.tokens[word][start:end]
                for word, (start, end) in zip(words, offsets, strict=True)
            ]
            encoded["token_type_ids"] = torch.tensor([[int(has_capital(piece)) for piece in pieces]])
        with torch.inference_mode():
            scores = module(**encoded).logits[0].double().softmax(-1).numpy()
        firsts = [words.index(i) for i in range(len(sentence.tokens))]
        path = likeliest_path(scores[firsts], iob2_follows(tuple(module.config.id2label.values())))
        expected = [module.config.id2label[label] for label in path.tolist()]
        (tagged,) = texts.tagger.tag([text])
        found = tags_of(
            sentence.tokens, [GivenEntity(e.start, e.end, e.entity_group) for e in tagged.entities]
        )
        assert kinds(found) == kinds(expected)
        n_compared += 1
    assert n_compared >= 0.6 * len(sentences)


class ToldCapitals(transformers.TokenClassificationPipeline):
    """The pipeline, which tells the model by segment ids what has a capital letter."""

    def preprocess(self, input_: Any, **parameters: Any) -> Any:  # type: ignore[override]
        for inputs in super().preprocess(input_, **parameters):  # type: ignore[no-untyped-call]
            spans = inputs["offset_mapping"][0].tolist()
            capitals = [int(has_capital(input_[start:end])) for start, end in spans]
            inputs["token_type_ids"] = torch.tensor([capitals])
            yield inputs


def reads_capitals() -> bool:
    return find_trained_model(shipped("tagger"), models=SETTINGS.models).reads_capitals


def are_whole(text: str, sentence: TaggedSentence, tokenizer: Any) -> bool:
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    offsets = np.array(encoded["offset_mapping"], np.int32)
    numbers = whole_words(text, np.array(encoded.word_ids(0), np.int32), offsets[:, 0], offsets[:, 1])
    return int(numbers.max()) + 1 == len(sentence.tokens)


def kinds(tags: list[str]) -> list[str]:
    """Without B- and I-: the service says where an entity begins, and a lone I- begins one."""
    return [tag[2:] for tag in tags]


def test_scores_of_texts_are_those_of_the_pipeline(
    texts: TextModels, packaged_folder: Path, tmp_path: Path
) -> None:
    name = shipped("sequence")
    asked = [each.text for each in read_labelled(real_file("classification/sst2-sentences/dev.jsonl"))]
    asked = asked[:N_INPUTS]
    temperature = find_trained_model(name, models=SETTINGS.models).calibration.get("temperature", 1.0)
    folder = published(
        name,
        "BertForSequenceClassification",
        tmp_path / name,
        base=packaged_folder,
        head_scale=1 / temperature,
    )
    reference: Any = pipeline("text-classification", model=str(folder), top_k=None)
    found = classify_with(texts.sequence[name], asked, top_k=10, truncate=True)
    assert len(found.results) == N_INPUTS
    for ours, theirs in zip(found.results, reference(asked), strict=True):
        assert {each.label: each.score for each in ours.labels} == pytest.approx(
            {each["label"]: each["score"] for each in theirs}, abs=TOLERANCE
        )


@pytest.fixture(scope="module")
def questions() -> list[ContextQuestion]:
    """On contexts that are short enough for the time that a test may take, and for one window."""
    found = read_squad(real_file("qa/squad/dev-v1.1.json.gz"))
    short = [each for each in found if len(each.context) < MAX_CONTEXT_CHARS]
    return short[:: len(short) // N_INPUTS][:N_INPUTS]


def test_answers_are_those_of_the_pipeline(
    reading: ReadingModels, questions: list[ContextQuestion], packaged_folder: Path, tmp_path: Path
) -> None:
    assert reading.reader is not None
    reference = QuestionAnswering(
        published(
            shipped("reader"),
            "BertForQuestionAnswering",
            tmp_path / "reader",
            base=packaged_folder,
            renamed={"encoder.": "bert.", "spans.": "qa_outputs."},
        )
    )
    assert len(questions) == N_INPUTS
    for each in questions:
        (found,) = reading.reader.read(each.question, [TitledText(each.context)]).passages
        assert found is not None
        start, end, probability = reference.answer(each.question, each.context)
        best = found.spans[0]
        assert (best.start, best.end) == (start, end)
        assert best.probability == pytest.approx(probability, abs=TOLERANCE)
