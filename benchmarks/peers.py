"""Bifocal beside other ways to search the same corpus, in one run: speed, memory and quality on SciFact.

    python benchmarks/peers.py [--documents 5183] [--queries 300] [--contenders txtai,bifocal]

Contenders: txtai (its hybrid index, and its default by vectors alone), sentence-transformers semantic_search,
a flat FAISS index, bm25s, SQLite FTS5, and Bifocal as it is served: one service and one worker over HTTP. All
that use vectors have the same encoder, the packaged all-MiniLM-L6-v2, by path. The others run in an
environment of their own, made at first use in CACHE/peers with the versions in REQUIREMENTS.

Each contender indexes alone, one after the other, since all cores are its own then. Queries go to all of them
in turns, one at a time, so that whatever else the machine does meets all alike. Latencies are of the first
ten; nDCG@10 is trec_eval's. Resident memory is what the contender's processes hold after the queries. Bifocal
does not rerank here. Writes benchmarks/results/peers_{n}.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from app.engine.models import find_bi_encoder
from app.settings import Settings
from benchmarks.environment import environment, write_result
from benchmarks.peers_bifocal import Served
from benchmarks.peers_contenders import CONTENDERS, TOP_K
from indexer.evaluation.dataset import Dataset, read_corpus, read_folder
from indexer.evaluation.metrics import NDCG, measure
from indexer.evaluation.statistics import estimate

REQUIREMENTS = (
    ("torch==2.13.0",),  # first: what follows must find it and not choose another
    ("sentence-transformers==6.2.0", "transformers==5.24.0", "faiss-cpu==1.15.1", "bm25s==0.3.16"),
    ("txtai==9.14.0",),
)
N_WARM_UP = 10


class Contender:
    """A contender in a process of its own; the other end is benchmarks/peers_contenders.py."""

    def __init__(self, name: str, python: Path, encoder: Path, corpus: Path) -> None:
        script = Path(__file__).with_name("peers_contenders.py")
        self._process = subprocess.Popen(
            [python, script, name, encoder, corpus],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        )

    def __enter__(self) -> "Contender":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def index(self) -> float:
        """Seconds."""
        return float(self._ask("index")["seconds"])

    def search(self, query: str, top_k: int) -> tuple[float, list[str]]:
        """(milliseconds, document ids)."""
        answer = self._ask("search", query=query, top_k=top_k)
        return float(answer["ms"]), answer["ids"]

    def about(self) -> dict[str, Any]:
        """Resident memory and versions."""
        return self._ask("about")

    def _ask(self, command: str, **fields: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **fields}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a contender ended early; its error stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer


def peers_python(cache: Path) -> Path:
    """Of the environment of the others, made if it is not there yet."""
    folder = cache / "peers" / "venv"
    python, done = folder / "bin" / "python", folder / "complete"
    wanted = json.dumps(REQUIREMENTS)
    if not done.is_file() or done.read_text() != wanted:
        if not python.is_file():
            venv.create(folder, with_pip=True)
        for together in REQUIREMENTS:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *together], check=True)
        done.write_text(wanted)
    return python


def small_corpus(dataset: Dataset, n_documents: int, folder: Path) -> Path:
    """As JSON lines: the judged documents first, so that few documents still give figures."""
    assert dataset.corpus is not None
    judged = {document_id for of_query in dataset.qrels.values() for document_id in of_query}
    documents = sorted(read_corpus(dataset.corpus), key=lambda each: each.id not in judged)[:n_documents]
    path = folder / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for each in documents:
            fields = {"id": each.id, "title": each.title or "", "text": each.text}
            file.write(json.dumps(fields) + "\n")
    return path


def measured(
    contenders: dict[str, Contender | Served], dataset: Dataset, n_documents: int
) -> dict[str, dict[str, Any]]:
    seconds = {}
    for name, contender in contenders.items():
        seconds[name] = contender.index()
        print(f"{name}: {n_documents / seconds[name]:.1f} documents/s", flush=True)
    queries = dict(dataset.queries)
    for query in list(queries.values())[:N_WARM_UP]:
        for contender in contenders.values():
            contender.search(query, 10)
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    runs: dict[str, dict[str, list[str]]] = {name: {} for name in contenders}
    for query in queries.values():
        for name, contender in contenders.items():
            taken[name].append(contender.search(query, 10)[0])
    for query_id, query in queries.items():
        for name, contender in contenders.items():
            runs[name][query_id] = contender.search(query, TOP_K)[1]
    return {
        name: {
            "documents_per_s": round(n_documents / seconds[name], 1),
            **{f"p{p}_ms": round(float(np.percentile(taken[name], p)), 2) for p in (50, 95)},
            NDCG: _interval(measure(runs[name], dataset.qrels)[NDCG]),
            **contender.about(),
        }
        for name, contender in contenders.items()
    }


def _interval(values: Any) -> dict[str, float | None]:
    found = estimate(values)
    low, high = (None if end is None else round(end, 4) for end in (found.low, found.high))
    return {"mean": round(found.mean, 4), "low": low, "high": high}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("BIFOCAL_DATA", "../shared/data")) / "retrieval" / "scifact"
    parser.add_argument("--data", type=Path, default=data, metavar="DIR")
    parser.add_argument("--documents", type=int, default=5183)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--contenders", default=",".join([*CONTENDERS, *Served.MODES]))
    given = parser.parse_args(arguments)
    about = environment()  # before the load is our own
    settings = Settings.from_environment()
    python = peers_python(settings.cache)
    encoder = find_bi_encoder(settings.embedder, offline=True).folder
    names: list[str] = given.contenders.split(",")
    known = [*CONTENDERS, *Served.MODES]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no contender {', '.join(unknown)}; there are {', '.join(known)}")
    dataset = read_folder(given.data, split="test").first(given.queries)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        corpus = small_corpus(dataset, given.documents, Path(temporary))
        contenders: dict[str, Contender | Served] = {
            name: stack.enter_context(Contender(name, python, encoder, corpus))
            for name in names
            if name in CONTENDERS
        }
        chosen = [name for name in names if name in Served.MODES]
        if chosen:
            served = stack.enter_context(Served.started(Path(temporary) / "home", corpus))
            contenders |= {name: served.asking(Served.MODES[name]) for name in chosen}
        found = measured(contenders, dataset, given.documents)
    path = write_result(
        f"peers_{given.documents}",
        {
            "data_set": "scifact, test",
            "n_documents": given.documents,
            "n_queries": len(dataset.queries),
            "encoder": settings.embedder,
            "contenders": found,
            **about,
        },
    )
    print(json.dumps(found, indent=1))
    print(path)


if __name__ == "__main__":
    main()
