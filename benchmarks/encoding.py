"""Encoding speed: the compiled encoder against sentence-transformers, on the same texts in the same run.

    python benchmarks/encoding.py --data DIR [--texts 5000]

DIR holds scifact/corpus.jsonl and scifact/queries.jsonl (or .jsonl.gz) in BEIR layout. Each contender is a
process of its own. They take turns, slice by slice, so that whatever else the machine does meets both alike;
the ratio is the median over the slices. Results go to benchmarks/results/encoding.json.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from app.engine.models import find_bi_encoder, load_embedder
from app.settings import Settings
from benchmarks.environment import environment, write_result

RESULTS = Path(__file__).parent / "results" / "encoding.json"
CONTENDERS = ("sentence-transformers", "bifocal")
N_SLICES = 8
N_QUERIES = 200
WARM_UP = 8
"""Texts and queries before the clock starts."""


def read_texts(folder: Path, name: str) -> list[str]:
    plain, packed = folder / f"{name}.jsonl", folder / f"{name}.jsonl.gz"
    with (
        plain.open(encoding="utf-8")
        if plain.is_file()
        else gzip.open(packed, "rt", encoding="utf-8") as lines
    ):
        entries = [json.loads(line) for line in lines]
    return [f"{entry.get('title', '')} {entry['text']}".strip() for entry in entries]


def encoder_of(contender: str) -> tuple[Callable[[Sequence[str]], Any], str]:
    """(texts to vectors, what runs it). sentence-transformers runs with its default settings, in float32."""
    settings = Settings.from_environment()
    if contender == "bifocal":
        embedder = load_embedder(settings)
        return lambda texts: embedder.encode_documents(texts).vectors, embedder.description.runtime
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  only in that contender's process

    folder = find_bi_encoder(settings.embedder, offline=settings.offline).folder
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return lambda texts: model.encode(list(texts)), f"torch-float32 {metadata.version('torch')}"


def contend(contender: str, request_file: Path) -> None:
    """One contender's process: answers "slice I" and "query I" with seconds, until its input ends."""
    request = json.loads(request_file.read_text(encoding="utf-8"))
    start = time.perf_counter()
    encode, runtime = encoder_of(contender)
    load_s = time.perf_counter() - start
    for text in (*request["slices"][0][:WARM_UP], *request["queries"][:WARM_UP]):
        encode([text])
    print(json.dumps({"runtime": runtime, "load_s": round(load_s, 2)}), flush=True)
    vectors = []
    for line in sys.stdin:
        kind, _, number = line.strip().partition(" ")
        texts = request["slices"][int(number)] if kind == "slice" else [request["queries"][int(number)]]
        start = time.perf_counter()
        encoded = encode(texts)
        print(time.perf_counter() - start, flush=True)
        if kind == "slice":
            vectors.append(encoded)
    np.save(request_file.with_name(f"{contender}.npy"), np.concatenate(vectors))
    resident_mb = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    print(round(resident_mb), flush=True)


class Contender:
    """The other end of `contend`."""

    def __init__(self, name: str, request_file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--contend", name, "--request", str(request_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.about: dict[str, Any] = json.loads(self._read())

    def seconds(self, command: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return float(self._read())

    def finish(self) -> int:
        """End the process and return its resident megabytes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        resident_mb = int(self._read())
        self.process.wait()
        return resident_mb

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a contender ended early; its error stands above")
        return line


def measure(texts: Sequence[str], queries: Sequence[str]) -> dict[str, Any]:
    slices = [list(texts[i::N_SLICES]) for i in range(N_SLICES)]
    with tempfile.TemporaryDirectory() as folder:
        request_file = Path(folder) / "request.json"
        request_file.write_text(json.dumps({"slices": slices, "queries": list(queries)}), encoding="utf-8")
        contenders = {name: Contender(name, request_file) for name in CONTENDERS}
        seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        query_ms: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        for i in range(len(queries)):
            for name, contender in contenders.items():
                query_ms[name].append(1000 * contender.seconds(f"query {i}"))
        for i in range(N_SLICES):
            for name, contender in contenders.items():
                seconds[name].append(contender.seconds(f"slice {i}"))
            speeds = ", ".join(f"{name} {len(slices[i]) / seconds[name][i]:.1f}" for name in CONTENDERS)
            print(f"slice {i + 1}/{N_SLICES}, texts per second: {speeds}", flush=True)
        results = {
            name: {
                **contender.about,
                "texts_per_s": round(len(texts) / sum(seconds[name]), 1),
                "query_p50_ms": round(statistics.median(query_ms[name]), 2),
                "query_p95_ms": round(float(np.percentile(query_ms[name], 95)), 2),
                "resident_mb": contender.finish(),
            }
            for name, contender in contenders.items()
        }
        theirs, ours = (np.load(request_file.with_name(f"{name}.npy")) for name in CONTENDERS)
    similarities = np.einsum("nd,nd->n", theirs, ours)
    ratios = [a / b for a, b in zip(*(seconds[name] for name in CONTENDERS), strict=True)]
    return {
        "n_texts": len(texts),
        "contenders": results,
        "times_faster": {
            "median": round(statistics.median(ratios), 2),
            "smallest": round(min(ratios), 2),
            "largest": round(max(ratios), 2),
        },
        "cosine": {"mean": round(float(similarities.mean()), 4), "min": round(float(similarities.min()), 4)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("BIFOCAL_DATA", "../shared/data")) / "retrieval"
    parser.add_argument("--data", type=Path, default=data, metavar="DIR")
    parser.add_argument("--texts", type=int, default=5183)
    parser.add_argument("--contend", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--request", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contend:
        contend(arguments.contend, arguments.request)
        return
    about = environment()  # before the load is our own
    folder = arguments.data / "scifact"
    texts, queries = (
        read_texts(folder, "corpus")[: arguments.texts],
        read_texts(folder, "queries")[:N_QUERIES],
    )
    results = {**measure(texts, queries), **about}
    write_result("encoding", results)
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
