"""Choose the calibration texts and pairs again from the public data sets they come from.

    python -m indexer.calibration.build DATA

DATA is a folder with qa/squad/train-v1.1.json.gz, retrieval/scifact and retrieval/medquad. Only training
parts are used, so that no text or question on which quality is measured has taken part in calibration.
"""

import csv
import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from indexer.calibration import PAIRS, TEXTS

Text = tuple[str, str]
"""(source, text)"""
Pair = tuple[str, str, str, str]
"""(source, question, title, text)"""

N_ARTICLES = 75
N_CLAIMS = 30
N_ABSTRACTS = 40
N_ANSWERS = 40
N_PAIRS = {"squad": 70, "scifact": 25, "medquad": 25}
MISMATCHED_EVERY = 3
"""Every third pair has the passage of another question: that, too, is what a reranker reads."""
MAX_CHARS = 1400
"""About what the encoder reads of a text."""


def squad_texts(folder: Path, choice: random.Random) -> Iterator[Text]:
    """A question and a paragraph with its title out of each of some Wikipedia articles."""
    with gzip.open(folder / "train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in choice.sample(articles, N_ARTICLES):
        paragraph = choice.choice(article["paragraphs"])
        yield "squad", f"{article['title'].replace('_', ' ')} {paragraph['context']}"
        yield "squad", choice.choice(paragraph["qas"])["question"]


def scifact_texts(folder: Path, choice: random.Random) -> Iterator[Text]:
    """Claims of the training split, and abstracts that are relevant to training claims only."""
    training, test = _qrels(folder / "qrels" / "train.tsv"), _qrels(folder / "qrels" / "test.tsv")
    claims = [text for key, text in _beir(folder, "queries").items() if key in training]
    abstracts = set().union(*training.values()) - set().union(*test.values())
    corpus = _beir(folder, "corpus")
    yield from (("scifact", text) for text in choice.sample(claims, N_CLAIMS))
    yield from (("scifact", corpus[key]) for key in choice.sample(sorted(abstracts), N_ABSTRACTS))


def medquad_texts(folder: Path, choice: random.Random) -> Iterator[Text]:
    """Questions of the training split, each followed by its answer."""
    training = _qrels(folder / "qrels" / "train.tsv")
    queries, corpus = _beir(folder, "queries"), _beir(folder, "corpus")
    for key in choice.sample(sorted(training), N_ANSWERS):
        yield "medquad", queries[key]
        yield "medquad", corpus[min(training[key])]


def squad_pairs(folder: Path, choice: random.Random) -> Iterator[Pair]:
    with gzip.open(folder / "train-v1.1.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    for article in choice.sample(articles, N_PAIRS["squad"]):
        paragraph = choice.choice(article["paragraphs"])
        question = choice.choice(paragraph["qas"])["question"]
        yield "squad", question, article["title"].replace("_", " "), paragraph["context"]


def judged_pairs(folder: Path, source: str, choice: random.Random) -> Iterator[Pair]:
    """Of the training split, without documents that are relevant to its test questions."""
    training, test = _qrels(folder / "qrels" / "train.tsv"), _qrels(folder / "qrels" / "test.tsv")
    of_test = set().union(*test.values())
    usable = {key: sorted(found - of_test) for key, found in sorted(training.items()) if found - of_test}
    queries, corpus = _beir(folder, "queries"), _entries(folder, "corpus")
    for key in choice.sample(sorted(usable), N_PAIRS[source]):
        passage = corpus[usable[key][0]]
        yield source, queries[key], passage.get("title") or "", passage["text"]


def mismatched(pairs: list[Pair]) -> Iterator[Pair]:
    """Every third pair with the passage of the pair before."""
    for i, (source, question, title, text) in enumerate(pairs):
        if i % MISMATCHED_EVERY == MISMATCHED_EVERY - 1:
            _, _, title, text = pairs[i - 1]  # noqa: PLW2901
        yield source, question, title, text


def _beir(folder: Path, name: str) -> dict[str, str]:
    """Text by id, a title in front."""
    entries = _entries(folder, name)
    return {key: f"{entry.get('title') or ''} {entry['text']}".strip() for key, entry in entries.items()}


def _entries(folder: Path, name: str) -> dict[str, dict[str, Any]]:
    plain = folder / f"{name}.jsonl"
    with plain.open("rt", encoding="utf-8") if plain.is_file() else gzip.open(f"{plain}.gz", "rt") as file:
        entries: list[dict[str, Any]] = [json.loads(line) for line in file]
    return {entry["_id"]: entry for entry in entries}


def _qrels(file: Path) -> dict[str, set[str]]:
    """Relevant documents by query."""
    relevant: dict[str, set[str]] = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                relevant.setdefault(row["query-id"], set()).add(row["corpus-id"])
    return relevant


def build_pairs(data: Path, file: Path) -> None:
    choice = random.Random(21)  # noqa: S311  a sample, not a secret
    chosen = [
        pair
        for pairs in (
            squad_pairs(data / "qa" / "squad", choice),
            judged_pairs(data / "retrieval" / "scifact", "scifact", choice),
            judged_pairs(data / "retrieval" / "medquad", "medquad", choice),
        )
        for pair in mismatched(list(pairs))
    ]
    choice.shuffle(chosen)
    lines = [
        json.dumps(
            {"source": source, "question": question, "title": title, "text": text[:MAX_CHARS]},
            ensure_ascii=False,
        )
        + "\n"
        for source, question, title, text in chosen
    ]
    file.write_text("".join(lines), encoding="utf-8", newline="\n")


def build(data: Path, texts: Path) -> None:
    choice = random.Random(20)  # noqa: S311  a sample, not a secret
    chosen = [
        *squad_texts(data / "qa" / "squad", choice),
        *scifact_texts(data / "retrieval" / "scifact", choice),
        *medquad_texts(data / "retrieval" / "medquad", choice),
    ]
    choice.shuffle(chosen)
    lines = [
        json.dumps({"source": source, "text": text[:MAX_CHARS]}, ensure_ascii=False) + "\n"
        for source, text in chosen
    ]
    texts.write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    build(Path(sys.argv[1]), TEXTS)
    build_pairs(Path(sys.argv[1]), PAIRS)
