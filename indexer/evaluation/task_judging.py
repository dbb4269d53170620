"""Answers, entities and labels that models give, judged against what people gave."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from indexer.evaluation.metrics import Values
from indexer.evaluation.reliability import Bin, expected_calibration_error, reliability
from indexer.evaluation.statistics import Estimate, estimate
from indexer.evaluation.task_examples import ContextQuestion, LabelledText, TaggedSentence
from indexer.evaluation.task_metrics import (
    answer_f1,
    auroc,
    exact_match,
    macro_f1,
    span_f1,
)

X = TypeVar("X")
Y = TypeVar("Y")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    text: str
    """Empty where nothing was found."""
    probability: float
    """That it answers the question, 0..1. Below 0.5 the model holds that there is no answer."""


@dataclass(frozen=True, slots=True)
class GivenEntity:
    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class GivenLabel:
    label: str
    probability: float
    """Of the label, 0..1."""


@dataclass(frozen=True, slots=True)
class Judged:
    n_examples: int
    metrics: Mapping[str, Estimate]
    """An interval only where the metric is a mean over examples."""
    rows: Sequence[tuple[str, ...]]
    """Of each example, under `columns`."""
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    reliability: Mapping[str, Sequence[Bin]] = field(default_factory=dict)
    """What a probability is of, to how far it can be believed."""


def judge_answers(
    questions: Sequence[ContextQuestion],
    answer: Callable[[ContextQuestion], GivenAnswer],
    *,
    advance: Callable[[], None] = lambda: None,
) -> Judged:
    """Where some questions have no answer, a model may abstain: it does below a probability of 0.5.

    `best span` metrics look at what it would have answered, over the questions that have an answer. The
    probability is that there is an answer where some questions have none, and else that it is right.
    """
    given = _each(questions, answer, advance)
    has_answer = [bool(question.answers) for question in questions]
    may_abstain = not all(has_answer)
    final = [g.text if not may_abstain or g.probability >= 0.5 else "" for g in given]
    matches = np.array([exact_match(f, q.answers) for f, q in zip(final, questions, strict=True)])
    overlaps = np.array([answer_f1(f, q.answers) for f, q in zip(final, questions, strict=True)])
    meaning, is_right = "that the answer is exactly right", [bool(match) for match in matches]
    if may_abstain:
        meaning, is_right = "that there is an answer", has_answer
    bins = reliability([g.probability for g in given], is_right)
    metrics = {
        "exact match": estimate(matches),
        "F1": estimate(overlaps),
        "calibration error": _point(expected_calibration_error(bins)),
    }
    if may_abstain and any(has_answer):
        metrics["answerable AUROC"] = _point(auroc([g.probability for g in given], has_answer))
        metrics["best span F1"] = estimate(_best_span_f1(questions, given))
    return Judged(
        len(questions),
        metrics,
        rows=[
            (q.id, q.question, f, f"{g.probability:.4f}", f"{overlap:.4f}", " | ".join(q.answers))
            for q, f, g, overlap in zip(questions, final, given, overlaps, strict=True)
        ],
        columns=("id", "question", "answer", "probability", "F1", "expected"),
        reliability={meaning: bins},
    )


def judge_entities(
    sentences: Sequence[TaggedSentence],
    find: Callable[[str], Sequence[GivenEntity]],
    *,
    advance: Callable[[], None] = lambda: None,
) -> Judged:
    """The model reads the tokens with a space between them. An entity reaches from the token in which it
    begins to the one in which it ends.
    """
    predicted = [
        tags_of(s.tokens, found)
        for s, found in zip(sentences, _each_text(sentences, find, advance), strict=True)
    ]
    expected = [sentence.tags for sentence in sentences]
    types = sorted({tag[2:] for tags in expected for tag in tags if tag != "O"})
    metrics = {"span F1": _point(span_f1(predicted, expected))}
    for name in types:
        only = [[_only(tags, name) for tags in of] for of in (predicted, expected)]
        metrics[f"span F1 of {name}"] = _point(span_f1(*only))
    unknown = sorted({tag[2:] for tags in predicted for tag in tags if tag != "O"} - set(types))
    return Judged(
        len(sentences),
        metrics,
        rows=[
            (" ".join(s.tokens), " ".join(p), " ".join(s.tags))
            for s, p in zip(sentences, predicted, strict=True)
        ],
        columns=("tokens", "predicted", "expected"),
        notes=(f"the model finds types that the data lack: {', '.join(unknown)}",) if unknown else (),
    )


def judge_labels(
    texts: Sequence[LabelledText],
    classify: Callable[[str], GivenLabel],
    *,
    advance: Callable[[], None] = lambda: None,
) -> Judged:
    given = _each([each.text for each in texts], classify, advance)
    predicted, expected = [each.label for each in given], [each.label for each in texts]
    right = [p == e for p, e in zip(predicted, expected, strict=True)]
    bins = reliability([each.probability for each in given], right)
    return Judged(
        len(texts),
        {
            "accuracy": estimate(np.array(right, np.float64)),
            "macro F1": _point(macro_f1(predicted, expected)),
            "calibration error": _point(expected_calibration_error(bins)),
        },
        rows=[
            (each.text, g.label, f"{g.probability:.4f}", each.label)
            for each, g in zip(texts, given, strict=True)
        ],
        columns=("text", "predicted", "probability", "expected"),
        reliability={"that the label is right": bins},
    )


def tags_of(tokens: Sequence[str], entities: Sequence[GivenEntity]) -> list[str]:
    """IOB2 of tokens that were read with a space between them.

    >>> tags_of(["Marie", "Curie", "left", "Warsaw"], [GivenEntity(0, 11, "PER"), GivenEntity(17, 23, "LOC")])
    ['B-PER', 'I-PER', 'O', 'B-LOC']
    """
    tags = ["O"] * len(tokens)
    starts = np.cumsum([0, *(len(token) + 1 for token in tokens[:-1])]).tolist()
    for entity in entities:
        inside = [
            i
            for i, (start, token) in enumerate(zip(starts, tokens, strict=True))
            if start < entity.end and start + len(token) > entity.start
        ]
        for place, i in enumerate(inside):
            tags[i] = f"{'I' if place else 'B'}-{entity.type}"
    return tags


def _each(examples: Sequence[X], give: Callable[[X], Y], advance: Callable[[], None]) -> list[Y]:
    given = []
    for each in examples:
        given.append(give(each))
        advance()
    return given


def _each_text(
    sentences: Sequence[TaggedSentence],
    find: Callable[[str], Sequence[GivenEntity]],
    advance: Callable[[], None],
) -> list[Sequence[GivenEntity]]:
    return _each([" ".join(sentence.tokens) for sentence in sentences], find, advance)


def _best_span_f1(questions: Sequence[ContextQuestion], given: Sequence[GivenAnswer]) -> Values:
    pairs = zip(questions, given, strict=True)
    return np.array([answer_f1(g.text, q.answers) for q, g in pairs if q.answers])


def _only(tags: Sequence[str], name: str) -> list[str]:
    return [tag if tag[2:] == name else "O" for tag in tags]


def _point(value: float) -> Estimate:
    return Estimate(value, None, None)
