"""Quality and speed of the word index alone.

    python benchmarks/lexical.py quality --data DIR       five public sets (needs pytrec-eval-terrier)
    python benchmarks/lexical.py speed --data DIR --passages 1000000

DIR is in BEIR layout, one folder per set: scifact, nfcorpus, cranfield, medquad, wikiqa. Results are merged
into benchmarks/results/lexical.json with the machine and the date.
"""

import argparse
import gzip
import itertools
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from app.storage.lexical.committed import Allowed
from app.storage.lexical.reader import LexicalReader
from app.storage.lexical.writer import LexicalWriter
from app.storage.rows import Rows, TextRow, Tombstones
from benchmarks.environment import environment

RESULTS = Path(__file__).parent / "results" / "lexical.json"

SPLITS = [
    ("scifact", "train"),
    ("scifact", "test"),
    ("nfcorpus", "dev"),
    ("nfcorpus", "test"),
    ("cranfield", "test"),
    ("medquad", "train"),
    ("medquad", "dev"),
    ("medquad", "test"),
    ("wikiqa", "train"),
    ("wikiqa", "dev"),
    ("wikiqa", "test"),
]
QUESTION_SETS = ["medquad", "wikiqa", "scifact"]
MEASURES = {"ndcg_cut_10": "nDCG@10", "recip_rank": "MRR", "recall_100": "Recall@100", "map": "MAP"}
WORDS_PER_PASSAGE = 130
REPLACED_WORDS = 6
"""Of every passage, so that repeating the corpora to the wanted size does not make copies."""
SHARES = [0.00001, 0.0001, 0.001, 0.01, 0.1, 0.5, 1.0]


class TextFeed:
    """The part of the rows that a word index follows, over texts in memory."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def texts_after(self, _collection_key: int, key: int, block: int = 1024) -> Iterator[Sequence[TextRow]]:
        for start in range(key, len(self.texts), block):
            yield [
                TextRow(start + i + 1, (start + i) // 3 + 1, title or None, text)
                for i, (title, text) in enumerate(self.texts[start : start + block])
            ]

    def tombstones_after(self, _collection_key: int, _view: str, _sequence: int) -> Tombstones:
        return Tombstones(1, np.empty(0, np.int64))

    def max_key(self, _collection_key: int, _view: str) -> int:
        return len(self.texts)

    def data_version(self) -> int:
        return len(self.texts)

    def collection_stats(self, _collection_key: int) -> SimpleNamespace:
        return SimpleNamespace(n_passages=len(self.texts))


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    compressed = path.with_name(path.name + ".gz")
    with gzip.open(compressed, "rt") if compressed.exists() else path.open() as file:
        yield from map(json.loads, file)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for line in path.read_text().splitlines()[1:]:
        query_id, document_id, score = line.split("\t")
        qrels.setdefault(query_id, {})[document_id] = int(score)
    return qrels


def open_index(
    folder: Path, texts: Iterable[tuple[str, str]]
) -> tuple[LexicalReader, LexicalWriter, TextFeed]:
    feed = TextFeed()
    feed.texts.extend(texts)
    rows = cast(Rows, feed)
    writer = LexicalWriter(folder, rows, 1)
    writer.commit()
    return LexicalReader(folder, rows, 1), writer, feed


def quality(data: Path) -> list[dict[str, Any]]:
    import pytrec_eval  # noqa: PLC0415  only this measurement needs it

    table = []
    for name, splits in itertools.groupby(SPLITS, key=lambda pair: pair[0]):
        corpus = list(read_lines(data / name / "corpus.jsonl"))
        queries = {query["_id"]: query["text"] for query in read_lines(data / name / "queries.jsonl")}
        with tempfile.TemporaryDirectory() as folder:
            reader, writer, _ = open_index(
                Path(folder) / "words", ((document.get("title", ""), document["text"]) for document in corpus)
            )
            for _, split in splits:
                qrels = read_qrels(data / name / "qrels" / f"{split}.tsv")
                run = {}
                for query_id in qrels:
                    found = reader.match(queries[query_id], depth=1000)
                    ids = [corpus[key - 1]["_id"] for key in found.keys.tolist()]
                    run[query_id] = dict(zip(ids, found.scores.tolist(), strict=True))
                measured = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES)).evaluate(run).values()
                row = {"set": name, "split": split, "queries": len(qrels)}
                for measure, label in MEASURES.items():
                    row[label] = round(sum(values[measure] for values in measured) / len(qrels), 4)
                table.append(row)
                print(row)
            writer.close()
    return table


def made_passages(data: Path, n_passages: int) -> Iterator[tuple[str, str]]:
    """Real passages, repeated with a few words replaced."""
    passages = []
    for name in ["medquad", "scifact", "wikiqa", "nfcorpus"]:
        for document in read_lines(data / name / "corpus.jsonl"):
            words = document["text"].split()
            for start in range(0, len(words), WORDS_PER_PASSAGE):
                passages.append((document.get("title", ""), words[start : start + WORDS_PER_PASSAGE]))
    vocabulary = sorted({word for _, words in passages[::20] for word in words})
    generator = np.random.default_rng(0)
    for i in range(n_passages):
        title, words = passages[i % len(passages)]
        words = list(words)
        for place in generator.integers(len(words), size=REPLACED_WORDS).tolist() if words else []:
            words[place] = vocabulary[generator.integers(len(vocabulary))]
        yield title, " ".join(words)


def milliseconds(actions: Iterable[Callable[[], object]]) -> dict[str, float]:
    times = []
    for action in actions:
        began = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - began))
    p50, p95, worst = np.percentile(times, [50, 95, 100]).tolist()
    return {"p50_ms": round(p50, 2), "p95_ms": round(p95, 2), "max_ms": round(worst, 2)}


def speed(data: Path, n_passages: int) -> dict[str, Any]:
    questions = []
    for name in QUESTION_SETS:
        texts = [query["text"] for query in read_lines(data / name / "queries.jsonl")]
        questions += texts[:: len(texts) // 70][:70]
    texts = list(made_passages(data, n_passages))
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words"
        began = time.perf_counter()
        reader, writer, feed = open_index(words, texts)
        seconds = time.perf_counter() - began
        report: dict[str, Any] = {
            "passages": n_passages,
            "built_per_second": round(n_passages / seconds),
            "size_mb": round(sum(path.stat().st_size for path in words.rglob("*") if path.is_file()) / 1e6),
        }
        print(report)
        began = time.perf_counter()
        reader.match("first", depth=1)
        report["open_and_verify_ms"] = round(1000 * (time.perf_counter() - began))
        for depth in (10, 100, 1000):
            report[f"depth {depth}"] = milliseconds(
                [partial(reader.match, text, depth=depth) for text in questions] * 2
            )
            print(depth, report[f"depth {depth}"])
        generator = np.random.default_rng(1)
        for share in SHARES:
            n_allowed = max(1, round(share * n_passages))
            allowed = Allowed.passages(np.sort(generator.choice(n_passages, n_allowed, replace=False) + 1))
            report[f"filter {100 * share:g} %"] = milliseconds(
                [partial(reader.match, text, depth=100, allowed=allowed) for text in questions]
            )
            print(share, report[f"filter {100 * share:g} %"])
        report |= measure_updates(writer, reader, feed)
        writer.close()
    report["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return report


def measure_updates(writer: LexicalWriter, reader: LexicalReader, feed: TextFeed) -> dict[str, Any]:
    """Single documents: following them, the first search after each, and a commit of each."""

    def add() -> None:
        feed.texts.append(("New", "one more passage with some words of its own"))

    followed, searched, committed = [], [], []
    for times, follow, n in ((followed, writer.apply, 300), (committed, writer.commit, 30)):
        for _ in range(n):
            add()
            began = time.perf_counter()
            follow()
            times.append(1000 * (time.perf_counter() - began))
            began = time.perf_counter()
            reader.match("words of its own", depth=10)
            searched.append(1000 * (time.perf_counter() - began))
    return {
        name: {
            "p50_ms": round(float(np.median(times)), 2),
            "p95_ms": round(float(np.percentile(times, 95)), 2),
        }
        for name, times in (
            ("apply one", followed),
            ("first search after", searched),
            ("commit one", committed),
        )
    }


def store(name: str, result: object) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[name] = {
        **environment(),
        "result": result,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=100_000)
    arguments = parser.parse_args()
    if arguments.what == "quality":
        store("quality", quality(arguments.data))
    else:
        store(f"speed {arguments.passages}", speed(arguments.data, arguments.passages))


if __name__ == "__main__":
    main()
