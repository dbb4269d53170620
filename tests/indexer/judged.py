"""A made BEIR folder: 20 documents about animals, each of other words, and 4 judged queries."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ANIMALS = [
    *("otter", "heron", "badger", "falcon", "salmon", "beetle", "viper", "walrus", "gecko", "lynx"),
    *("bison", "crane", "hornet", "python", "turtle", "jackal", "puffin", "squid", "moose", "newt"),
]
CORPUS = [
    {"_id": f"d{i}", "title": animal.title(), "text": f"The {animal} number{i} eats food{i} at place{i}."}
    for i, animal in enumerate(ANIMALS)
]
QUERIES = [
    {"_id": "q-otter", "text": "otter food0"},
    {"_id": "q-lynx", "text": "where does the lynx eat food9"},
    {"_id": "q-unjudged", "text": "moose"},
    {"_id": "q-newt", "text": "newt place19"},
    {"_id": "q-pointless", "text": "unicorn"},
]
QRELS = [("q-otter", "d0", 1), ("q-lynx", "d9", 2), ("q-newt", "d19", 1), ("q-pointless", "d3", 0)]


def write_folder(
    folder: Path,
    *,
    corpus: Iterable[Mapping[str, object]] = CORPUS,
    queries: Iterable[Mapping[str, object]] = QUERIES,
    qrels: Sequence[tuple[str, str, object]] = QRELS,
) -> Path:
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    write_lines(folder / "corpus.jsonl", corpus)
    write_lines(folder / "queries.jsonl", queries)
    judgements = "".join(f"{query}\t{document}\t{score}\n" for query, document, score in qrels)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgements}", encoding="utf-8")
    return folder


def write_lines(path: Path, objects: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
    return path
