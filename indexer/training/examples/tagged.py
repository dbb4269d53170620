"""Sentences with a tag for every word, in IOB2: a word and its tag on a line, a blank line between sentences.

IOB2 (Tjong Kim Sang and Veenstra 1999): B- begins an entity, I- goes on with one of the same type, O is none.
"""

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import BadFile
from indexer.evaluation.lines import refuse

OUTSIDE = "O"
TAG = re.compile(r"O|[BI]-\S+")
BETWEEN_DOCUMENTS = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    words: tuple[str, ...]
    tags: tuple[str, ...]
    path: Path
    line: int
    """Of the first word."""


def read_tagged(path: Path, *, allowed: Sequence[str] = ()) -> list[TaggedSentence]:
    """
    Args:
        allowed: tags; empty allows any.

    Raises:
        BadFile: a line without two columns, a tag that is none of IOB2 or not allowed, or no sentence at all.
    """
    sentences = []
    words: list[str] = []
    tags: list[str] = []
    first = 1
    for line, text in _lines(path):
        if not text.strip() or text.startswith(BETWEEN_DOCUMENTS):
            if words:
                sentences.append(TaggedSentence(tuple(words), tuple(tags), path, first))
            words, tags = [], []
            continue
        if not words:
            first = line
        word, tag = _columns(path, line, text)
        _check(path, line, tag, tags[-1] if tags else OUTSIDE, allowed)
        words.append(word)
        tags.append(tag)
    if words:
        sentences.append(TaggedSentence(tuple(words), tuple(tags), path, first))
    if not sentences:
        raise BadFile(f"{path} has no sentence")
    return sentences


def tags_of(sentences: Sequence[TaggedSentence]) -> list[str]:
    """O, then B- and I- of every type, in order of the types.

    Raises:
        BadFile: no entity at all, or a type with one entity.
    """
    counts = Counter(tag[2:] for sentence in sentences for tag in sentence.tags if tag.startswith("B-"))
    if not counts:
        raise BadFile(f"{sentences[0].path} has no entity; every tag is {OUTSIDE}")
    for sentence in sentences:
        for i, tag in enumerate(sentence.tags):
            if tag.startswith("B-") and counts[tag[2:]] == 1:
                refuse(
                    sentence.path,
                    sentence.line + i,
                    f"the type {tag[2:]!r} has this one entity alone; a type needs two or more",
                )
    return [OUTSIDE, *(f"{prefix}-{kind}" for kind in sorted(counts) for prefix in "BI")]


def _columns(path: Path, line: int, text: str) -> tuple[str, str]:
    columns = text.split("\t") if "\t" in text else text.split()
    if len(columns) < 2 or not columns[0].strip():
        refuse(path, line, "has no word and tag between a tab")
    return columns[0].strip(), columns[-1].strip()


def _check(path: Path, line: int, tag: str, before: str, allowed: Sequence[str]) -> None:
    if TAG.fullmatch(tag) is None:
        refuse(path, line, f"{tag!r} is no tag of IOB2: O, B-TYPE or I-TYPE")
    if tag.startswith("I-") and before[2:] != tag[2:]:
        refuse(path, line, f"{tag} follows {before}; in IOB2 an entity begins with B-{tag[2:]}")
    if allowed and tag not in allowed:
        refuse(path, line, f"the tag {tag!r} does not occur in training; there are {', '.join(allowed)}")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        refuse(path, number, f"is not UTF-8: {error}")
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadFile(f"{path} is damaged after line {number}: {error}") from error
