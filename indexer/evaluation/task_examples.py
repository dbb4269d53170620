"""Examples that models are judged on: questions with contexts, tagged sentences, labelled texts."""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import BadFile
from indexer.evaluation.lines import columns_or_blank, objects, refuse


@dataclass(frozen=True, slots=True)
class ContextQuestion:
    id: str
    question: str
    context: str
    title: str | None
    answers: tuple[str, ...]
    """All that count as right; none where the context has no answer."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    tokens: tuple[str, ...]
    tags: tuple[str, ...]
    """IOB2."""


@dataclass(frozen=True, slots=True)
class LabelledText:
    text: str
    label: str


def read_squad(path: Path) -> list[ContextQuestion]:
    """SQuAD's JSON, version 1.1 or 2.0, plain or gzipped.

    Raises:
        BadFile: not of that form; the message names the question.
    """
    whole = _json(path)
    found = []
    try:
        for article in whole["data"]:
            for paragraph in article["paragraphs"]:
                for each in paragraph["qas"]:
                    found.append(_question(article.get("title"), paragraph["context"], each))
    except (KeyError, TypeError, AttributeError) as error:
        last = f" behind the question {found[-1].id!r}" if found else ""
        raise BadFile(f"{path} is not of SQuAD's form{last}: {error!r}") from error
    if not found:
        raise BadFile(f"{path} has no question")
    return found


def _question(title: str | None, context: str, fields: Mapping[str, Any]) -> ContextQuestion:
    is_impossible = fields.get("is_impossible", False)
    answers = () if is_impossible else tuple(answer["text"] for answer in fields["answers"])
    return ContextQuestion(str(fields["id"]), fields["question"], context, title, answers)


def read_tagged(path: Path) -> list[TaggedSentence]:
    """A token and its tag a line, between tabs or spaces, the tag last; a blank line ends a sentence.

    Lines of -DOCSTART- are left out. Tags may be IOB1 or IOB2; what begins an entity is a B- afterwards.

    Raises:
        BadFile: a line has no tag, or one that is neither O nor B- or I- with a type.
    """
    sentences: list[TaggedSentence] = []
    tokens: list[str] = []
    tags: list[str] = []
    for number, values in columns_or_blank(path):
        if values and values[0] != "-DOCSTART-":
            if len(values) < 2 or not _is_tag(values[-1]):
                refuse(path, number, "has no tag (O, B-TYPE or I-TYPE) behind the token")
            tokens.append(values[0])
            tags.append(values[-1])
        elif tokens:
            sentences.append(TaggedSentence(tuple(tokens), tuple(iob2(tags))))
            tokens, tags = [], []
    if tokens:
        sentences.append(TaggedSentence(tuple(tokens), tuple(iob2(tags))))
    if not sentences:
        raise BadFile(f"{path} has no sentence")
    return sentences


def iob2(tags: Sequence[str]) -> list[str]:
    """
    >>> iob2(["I-PER", "I-PER", "I-LOC", "O", "B-LOC"])
    ['B-PER', 'I-PER', 'B-LOC', 'O', 'B-LOC']
    """
    before, changed = "O", []
    for tag in tags:
        goes_on = tag.startswith("I-") and before[2:] == tag[2:]
        changed.append(f"B-{tag[2:]}" if tag.startswith("I-") and not goes_on else tag)
        before = tag
    return changed


def read_labelled(path: Path) -> list[LabelledText]:
    """JSON lines with `text` and `label`, plain or gzipped.

    Raises:
        BadFile: one of them is missing or no text; the message names the line.
    """
    found = []
    for number, fields in objects(path):
        for name in ("text", "label"):
            if not isinstance(fields.get(name), str):
                refuse(path, number, f"{name!r} is missing or no string")
        found.append(LabelledText(fields["text"], fields["label"]))
    if not found:
        raise BadFile(f"{path} has no example")
    return found


def _is_tag(written: str) -> bool:
    return written == "O" or (written[:2] in {"B-", "I-"} and len(written) > 2)


def _json(path: Path) -> Any:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return json.loads(file.read())
    except (ValueError, RecursionError, EOFError, zlib.error) as error:
        raise BadFile(f"{path} is no JSON: {error}") from error
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error}") from error
