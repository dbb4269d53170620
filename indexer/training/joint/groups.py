"""Training data of the joint model: a question with passages that answer it and passages that do not.

Two formats are read: SQuAD's JSON (every question with its paragraph and answer), and JSON lines of groups

    {"question": ..., "passages": [{"text": ..., "title": ..., "relevance": 1, "answer": [start, end]}, ...]}

where `relevance` is 1, 0 or null (not judged), and `answer` is a pair of offsets into the text, [] where the
text holds no answer, or null where that is not known.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexer.evaluation.lines import objects, refuse
from indexer.training.examples.questions import read_questions

Span = tuple[int, int]
NO_ANSWER: Span = (0, 0)

MIN_CONFIDENCE = 0.7
"""Of an answer's offset, where a data set says that the offset was guessed among several occurrences."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage for a question."""

    text: str
    title: str | None
    relevance: float | None
    """1 or 0; None takes no part in the ranking loss."""
    answer: Span | None
    """Half-open, in code points of the text; NO_ANSWER where there is none; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Group:
    question: str
    candidates: Sequence[Candidate]


def read_groups(file: Path) -> Iterator[Group]:
    """
    Raises:
        BadFile: neither format, or an answer that is not in its text; names the file and line or question.
    """
    if file.name.removesuffix(".gz").endswith(".json"):
        yield from _of_questions(file)
    else:
        yield from _lines(file)


def _of_questions(file: Path) -> Iterator[Group]:
    """Of files in SQuAD's layout; a question whose answer's place is doubtful is left out."""
    for question in read_questions(file):
        span, relevance = NO_ANSWER, None
        if question.answers:
            first = question.answers[0]
            if first.confidence < MIN_CONFIDENCE:
                continue
            span, relevance = (first.start, first.end), 1.0
        candidate = Candidate(question.context, question.title or None, relevance, span)
        yield Group(question.text, (candidate,))


def _lines(file: Path) -> Iterator[Group]:
    for number, entry in objects(file):
        try:
            yield Group(str(entry["question"]), tuple(_candidate(each) for each in entry["passages"]))
        except (ValueError, KeyError, TypeError) as error:
            refuse(file, number, f"is not a question with its passages: {error}")


def _candidate(entry: Mapping[str, Any]) -> Candidate:
    answer, text = entry.get("answer"), str(entry["text"])
    if answer is not None and answer != []:
        start, end = answer
        if not 0 <= start < end <= len(text):
            raise ValueError(f"the answer {answer} is not within its text of {len(text)} characters")
        answer = (start, end)
    return Candidate(
        text, entry.get("title") or None, entry.get("relevance"), NO_ANSWER if answer == [] else answer
    )


def as_json(group: Group) -> str:
    passages: list[dict[str, Any]] = [
        {
            "text": c.text,
            "title": c.title,
            "relevance": c.relevance,
            "answer": [] if c.answer == NO_ANSWER else c.answer,
        }
        for c in group.candidates
    ]
    return json.dumps({"question": group.question, "passages": passages}, ensure_ascii=False)
