"""Training questions of the public data sets, ready for mining."""

import csv
import gzip
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.domain import Hit
from indexer.training.joint.groups import MIN_CONFIDENCE, Candidate
from indexer.training.joint.mining import Judged


def squad_documents(data: Path) -> Iterator[dict[str, str]]:
    """Paragraphs of SQuAD train and qed-nq as documents of one collection."""
    for tag, article, title, i, paragraph in _paragraphs(data):
        yield {"id": f"{tag}-{article}-{i}", "title": title, "text": paragraph["context"]}


def squad_questions(data: Path, tag: str) -> list[Judged]:
    """Of the articles of one set, `sq` or `qed`, with the paragraph and the span that answer each."""
    questions = []
    for of_set, article, title, i, paragraph in _paragraphs(data):
        if of_set != tag:
            continue
        for asked in paragraph["qas"]:
            answer = asked["answers"][0]
            if answer.get("offset_confidence", 1.0) >= MIN_CONFIDENCE:
                start = answer["answer_start"]
                span = (start, start + len(answer["text"]))
                positive = Candidate(paragraph["context"], title, 1.0, span)
                key = f"{of_set}-{article}-{i}"
                questions.append(Judged(asked["question"], frozenset({key}), positive))
    return questions


def lacks_answer(judged: Judged) -> Any:
    """Whether a hit's passage is free of the answer's words: a test for hits."""
    assert judged.positive is not None
    assert judged.positive.answer is not None
    start, end = judged.positive.answer
    answer = judged.positive.text[start:end].casefold()
    return lambda hit: answer not in hit.passages[0].text.casefold()


def beir_questions(folder: Path) -> list[Judged]:
    """Training queries of a folder in BEIR's layout."""
    relevant: dict[str, set[str]] = {}
    with (folder / "qrels" / "train.tsv").open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    texts = queries(folder)
    return [Judged(texts[key], frozenset(ids), None) for key, ids in relevant.items() if key in texts]


def queries(folder: Path) -> dict[str, str]:
    lines = (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["_id"]: entry["text"] for entry in map(json.loads, lines)}


def is_another_question(judged: Judged, asked: Mapping[str, str]) -> Any:
    """A test for hits of MedQuAD, in which a document's id is that of the question that it answers: the same
    question answered by another source is no negative."""
    own = _words(judged.question)

    def is_negative(hit: Hit) -> bool:
        return _words(asked.get(hit.document_id, "")) != own

    return is_negative


def _words(question: str) -> frozenset[str]:
    return frozenset(question.casefold().replace("?", " ").replace("(", " ").replace(")", " ").split())


def _paragraphs(data: Path) -> Iterator[tuple[str, int, str, int, Mapping[str, Any]]]:
    for tag, file in (("sq", "squad/train-v1.1.json.gz"), ("qed", "qed-nq/train.json.gz")):
        with gzip.open(data / "qa" / file, "rt", encoding="utf-8") as stream:
            articles = json.load(stream)["data"]
        for article, entry in enumerate(articles):
            for i, paragraph in enumerate(entry["paragraphs"]):
                yield tag, article, entry["title"].replace("_", " "), i, paragraph


def shuffled(questions: list[Judged], n: int, choice: random.Random) -> list[Judged]:
    return choice.sample(questions, min(n, len(questions)))
