"""Questions on paragraphs, with answers that are spans of them: files in SQuAD's layout, 1.1 and 2.0."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from app.errors import BadFile


@dataclass(frozen=True, slots=True)
class Span:
    """`context[start:end]` is the answer; code points."""

    start: int
    end: int
    confidence: float = 1.0
    """0..1, less than 1 where a data set says that the place was guessed among several occurrences."""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    title: str
    context: str
    answers: tuple[Span, ...]
    """Empty: the context does not answer it."""
    path: Path
    line: int

    def answer_texts(self) -> list[str]:
        return [self.context[span.start : span.end] for span in self.answers]


def read_questions(path: Path) -> list[Question]:
    """
    Raises:
        BadFile: not this layout, a blank or repeated question, an answer that is not in its context or not
            where it is said to be, or no question at all.
    """
    raw = _raw(path)
    try:
        articles = json.loads(raw)["data"]
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}, line {error.lineno}: is no JSON: {error.msg}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadFile(f"{path}, line 1: has no list 'data' of articles, as SQuAD has") from error
    questions = list(_questions(_File(path, raw), articles))
    if not questions:
        raise BadFile(f"{path} has no question")
    return questions


@dataclass(slots=True)
class _File:
    path: Path
    raw: str

    def refuse(self, question_id: str, what: str) -> NoReturn:
        raise BadFile(f"{self.path}, line {self.line(question_id)}: the question {question_id!r} {what}")

    def line(self, question_id: str) -> int:
        """Where the id is written; 1 where it cannot be found."""
        place = self.raw.find(json.dumps(question_id))
        return self.raw.count("\n", 0, max(place, 0)) + 1


def _questions(file: _File, articles: Sequence[Any]) -> Iterator[Question]:
    seen: set[str] = set()
    lines = _Lines(file.raw)
    for article, paragraph, found in _walk(file, articles):
        question_id, text = str(found.get("id") or ""), found.get("question")
        if not question_id:
            raise BadFile(f"{file.path}, line {lines.after(str(text))}: a question has no 'id'")
        if question_id in seen:
            file.refuse(question_id, "comes twice")
        if not isinstance(text, str) or not text.strip():
            file.refuse(question_id, "is blank")
        seen.add(question_id)
        yield Question(
            id=question_id,
            text=text.strip(),
            title=str(article.get("title") or "").replace("_", " "),
            context=paragraph["context"],
            answers=tuple(_spans(file, question_id, paragraph["context"], found)),
            path=file.path,
            line=lines.after(question_id),
        )


def _walk(
    file: _File, articles: Sequence[Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    try:
        for article in articles:
            for paragraph in article["paragraphs"]:
                if not isinstance(paragraph["context"], str):
                    raise TypeError("'context' is no string")  # noqa: TRY301
                for found in paragraph["qas"]:
                    yield article, paragraph, found
    except (KeyError, TypeError, AttributeError) as error:
        raise BadFile(f"{file.path}, line 1: not in SQuAD's layout: {error!r}") from error


def _spans(file: _File, question_id: str, context: str, found: dict[str, Any]) -> Iterator[Span]:
    if found.get("is_impossible"):
        return
    answers = found.get("answers")
    if not isinstance(answers, list) or not answers:
        file.refuse(question_id, "has no answer and is not marked is_impossible")
    for answer in answers:
        text, start = answer.get("text"), answer.get("answer_start")
        if not isinstance(text, str) or not text.strip() or not isinstance(start, int):
            file.refuse(question_id, "has an answer without 'text' and 'answer_start'")
        if context[start : start + len(text)] != text or start < 0:
            place = context.find(text)
            there = context[max(start, 0) :][: len(text)]
            file.refuse(
                question_id,
                f"has the answer {text!r} at {start}, where its context has {there!r}"
                + (f"; it occurs at {place}" if place >= 0 else "; it does not occur in the context at all"),
            )
        yield Span(start, start + len(text), float(answer.get("offset_confidence", 1.0)))


class _Lines:
    """Line numbers of strings that come one after the other in a file."""

    def __init__(self, raw: str) -> None:
        self._raw = raw
        self._place, self._line = 0, 1

    def after(self, string: str) -> int:
        place = self._raw.find(json.dumps(string, ensure_ascii=False), self._place)
        if place >= 0:
            self._line += self._raw.count("\n", self._place, place)
            self._place = place
        return self._line


def _raw(path: Path) -> str:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"{path} is not UTF-8: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"{path} is damaged: {error}") from error
