"""Training data of the joint model: a question with passages that answer it and passages that do not.

Two formats are read: SQuAD's JSON (every question with its paragraph and answer), and JSON lines of groups

    {"question": ..., "passages": [{"text": ..., "title": ..., "relevance": 1, "answer": [start, end]}, ...]}

where `relevance` is 1, 0 or null (not judged), and `answer` is a pair of offsets into the text, [] where the
text holds no answer, or null where that is not known.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import BadFile

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
    if file.suffix == ".gz":
        text = gzip.decompress(file.read_bytes()).decode()
    else:
        text = file.read_text(encoding="utf-8")
    if file.name.removesuffix(".gz").endswith(".json"):
        yield from _squad(file, text)
    else:
        yield from _lines(file, text)


def _squad(file: Path, text: str) -> Iterator[Group]:
    try:
        articles = json.loads(text)["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadFile(f"{file} is not JSON in SQuAD's format: {error!r}") from error
    for article in articles:
        title = str(article.get("title") or "").replace("_", " ") or None
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                span = _squad_answer(file, asked, paragraph["context"])
                if span is not None:
                    relevance = None if span == NO_ANSWER else 1.0
                    candidate = Candidate(paragraph["context"], title, relevance, span)
                    yield Group(asked["question"], (candidate,))


def _squad_answer(file: Path, asked: Mapping[str, Any], context: str) -> Span | None:
    """None where the offset of the answer is doubtful."""
    if asked.get("is_impossible"):
        return NO_ANSWER
    if not asked["answers"]:
        raise BadFile(f"{file}: question {asked['id']} has no answer and is not marked is_impossible")
    answer = asked["answers"][0]
    start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
    if not answer["text"] or context[start:end] != answer["text"]:
        raise BadFile(
            f"{file}: question {asked['id']}: the answer {answer['text'][:60]!r} is not at {start} of its"
            f" context, which has {context[start:end][:60]!r} there"
        )
    return (start, end) if answer.get("offset_confidence", 1.0) >= MIN_CONFIDENCE else None


def _lines(file: Path, text: str) -> Iterator[Group]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            yield Group(str(entry["question"]), tuple(_candidate(each) for each in entry["passages"]))
        except (ValueError, KeyError, TypeError) as error:
            raise BadFile(f"{file}:{number}: not a question with its passages: {error}") from error


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
