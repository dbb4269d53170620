"""Pairs of texts: with a score, or an anchor with what belongs to it and what does not.

Tables have a heading: sentence1, sentence2 and score (or label) between tabs. JSON lines have sentence1,
sentence2 and score, or anchor, positive and perhaps negative. Folders in BEIR layout give their judged pairs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import BadFile
from indexer.evaluation.dataset import read_corpus, read_folder
from indexer.evaluation.lines import columns, objects, refuse

SCORES = ("score", "label")


@dataclass(frozen=True, slots=True)
class ScoredPair:
    first: str
    second: str
    score: float
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class Positive:
    anchor: str
    positive: str
    negatives: tuple[str, ...]
    path: Path
    line: int


Pairs = list[ScoredPair] | list[Positive]


def read_pairs(path: Path) -> Pairs:
    """
    Raises:
        BadFile: a column or field is missing, blank or no number, kinds are mixed, or there is no pair.
    """
    found: list[Any] = list(_from_table(path) if ".tsv" in path.suffixes else _from_json(path))
    if not found:
        raise BadFile(f"{path} has no pair")
    other = next((pair for pair in found if type(pair) is not type(found[0])), None)
    if other is not None:
        refuse(path, other.line, "is of another kind than the pairs before")
    return found


def read_judged_pairs(folder: Path, split: str) -> list[Positive]:
    """Query and relevant document of every judgement; title and text of a document are joined.

    Raises:
        BadFile
    """
    judged = read_folder(folder, split=split)
    assert judged.corpus is not None
    texts = {document.id: _joined(document.title, document.text) for document in read_corpus(judged.corpus)}
    path = folder / "qrels" / f"{split}.tsv"
    return [
        Positive(judged.queries[query_id], texts[document_id], (), path, 0)
        for query_id, of_query in judged.qrels.items()
        for document_id, relevance in of_query.items()
        if relevance > 0 and document_id in texts
    ]


def scaled(pairs: Sequence[ScoredPair], *, like: Sequence[ScoredPair]) -> list[float]:
    """Scores in 0..1: the least and greatest of the pairs trained on become 0 and 1.

    Raises:
        BadFile: those are all one.
    """
    low, high = min(pair.score for pair in like), max(pair.score for pair in like)
    if low == high:
        raise BadFile(f"{like[0].path}: every score is {low}; there is nothing to learn")
    return [min(max((pair.score - low) / (high - low), 0.0), 1.0) for pair in pairs]


def _from_table(path: Path) -> Iterator[ScoredPair]:
    lines = columns(path)
    try:
        number, heading = next(lines)
    except StopIteration:
        return
    score_name = next((name for name in SCORES if name in heading), None)
    if score_name is None or not {"sentence1", "sentence2"} <= set(heading):
        refuse(path, number, f"the heading is {', '.join(heading)}; expected sentence1, sentence2 and score")
    for number, values in lines:
        if len(values) != len(heading):
            refuse(path, number, f"has {len(values)} columns, the heading {len(heading)}")
        yield _scored(path, number, dict(zip(heading, values, strict=True)), score_name)


def _from_json(path: Path) -> Iterator[ScoredPair | Positive]:
    for number, fields in objects(path):
        score_name = next((name for name in SCORES if name in fields), None)
        if score_name is not None:
            yield _scored(path, number, fields, score_name)
        else:
            negatives = fields.get("negative", [])
            if isinstance(negatives, str):
                negatives = [negatives]
            if not isinstance(negatives, list) or not all(
                isinstance(n, str) and n.strip() for n in negatives
            ):
                refuse(path, number, "'negative' is no text or list of texts")
            yield Positive(
                _text(path, number, fields, "anchor"),
                _text(path, number, fields, "positive"),
                tuple(negatives),
                path,
                number,
            )


def _scored(path: Path, line: int, fields: dict[str, Any], score_name: str) -> ScoredPair:
    written = fields[score_name]
    try:
        score = float(written)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        refuse(path, line, f"the {score_name} {written!r} is no number")
    return ScoredPair(
        _text(path, line, fields, "sentence1"), _text(path, line, fields, "sentence2"), score, path, line
    )


def _text(path: Path, line: int, fields: dict[str, Any], name: str) -> str:
    text = fields.get(name)
    if not isinstance(text, str):
        refuse(path, line, f"{name!r} is missing" if text is None else f"{name!r} is no string")
    if not text.strip():
        refuse(path, line, f"{name!r} is blank")
    return text


def _joined(title: str | None, text: str) -> str:
    return f"{title}. {text}" if title else text
