"""Build time, size, latency and recall of the dense index over made vectors.

    python benchmarks/dense_index.py --n 1000000 [--dim 384] [--embeddings FILE.npy] [--built DIR]

A vector is a random convex mixture of four base vectors with a little noise; queries are drawn alike and are
not in the index. The base vectors are rows of FILE.npy (embeddings of real texts, (m, d)) or, without it,
16,000 draws from a Gaussian whose spectrum decays like that of all-MiniLM-L6-v2 on Wikipedia sentences (half
of the variance in 55 of 384 dimensions). The rows are made as they are read: n is not bounded by memory.
Writes benchmarks/results/dense_index_{n}.json.
"""

import argparse
import datetime as dt
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))

import faiss
import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, CollectionSettings, CollectionStats, View
from app.settings import Settings
from app.storage.embedded.dense import DenseIndex
from app.storage.embedded.masks import DocumentMask
from app.storage.rows import Generation, Rows, Tombstones, VectorBlock
from benchmarks.environment import write_result

BLOCK = 50_000
N_QUERIES = 300
N_WARM_UP = 50
N_FILTERED = 100
"""Queries under each filter."""
DEPTHS = (10, 100)
SHARES = (0.001, 0.01, 0.1, 0.5)
"""Of documents that a filter lets through."""

PASSAGES_PER_DOCUMENT = 4
COLLECTION = Collection(1, "made", CollectionSettings(), "made", "made", dt.datetime.now(dt.UTC))

Vectors32 = NDArray[np.float32]


class Mixtures:
    def __init__(self, dimensions: int, embeddings: Path | None) -> None:
        self._bases: Vectors32 = np.load(embeddings) if embeddings else _gaussian_bases(dimensions)

    def draw(self, n: int, *, seed: Sequence[int]) -> Vectors32:
        """(n, d), the same for the same seed."""
        rng = np.random.default_rng(seed)
        weights = rng.dirichlet([1.0] * 4, n).astype(np.float32)
        dimensions = self._bases.shape[1]
        mixed = 0.1 * rng.standard_normal((n, dimensions), dtype=np.float32) / np.sqrt(dimensions)
        for weight in weights.T:
            mixed += weight[:, np.newaxis] * self._bases[rng.integers(0, len(self._bases), n)]
        unit: Vectors32 = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        return unit


def _gaussian_bases(dimensions: int) -> Vectors32:
    deviations = np.exp(-np.arange(dimensions) / (0.42 * dimensions))
    bases = np.random.default_rng(0).standard_normal((16_000, dimensions)) * deviations
    unit: Vectors32 = (bases / np.linalg.norm(bases, axis=1, keepdims=True)).astype(np.float32)
    return unit


class MadeRows:
    """The feed of `Rows` that an index follows: n live passages, nothing ever changes."""

    def __init__(self, mixtures: Mixtures, n: int, published: Path) -> None:
        self._mixtures = mixtures
        self._n = n
        self._published = published

    def vectors_after(
        self, collection_key: int, view: View, key: int, *, up_to: int | None = None
    ) -> Iterator[VectorBlock]:
        last = min(self.max_key(collection_key, view), up_to or self._n)
        for start in range(key, last, BLOCK):
            keys = np.arange(start + 1, min(start + BLOCK, last) + 1)
            vectors = self._mixtures.draw(len(keys), seed=[1, start]).astype(np.float16)
            yield VectorBlock(keys, document_keys_of(keys), vectors)

    def max_key(self, _collection_key: int, view: View) -> int:
        return self._n if view == "passages" else 0

    def collection_stats(self, _collection_key: int) -> CollectionStats:
        return CollectionStats(0, self._n, 0, 0.0, 0)

    def data_version(self) -> int:
        return 1 + self._published.exists()

    def tombstones_after(self, _collection_key: int, _view: View, _sequence: int) -> Tombstones:
        return Tombstones(1, np.empty(0, np.int64))

    def generation(self, _collection_key: int, view: View) -> Generation | None:
        if view != "passages" or not self._published.exists():
            return None
        return Generation(**json.loads(self._published.read_text()))

    def publish_generation(self, generation: Generation) -> None:
        fields = {name: getattr(generation, name) for name in Generation.__slots__}
        self._published.write_text(json.dumps(fields))


def document_keys_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    return (keys - 1) // PASSAGES_PER_DOCUMENT + 1


def build(folder: Path, arguments: argparse.Namespace) -> None:
    """In a process of its own, as the worker is."""
    stages: dict[str, float] = {}
    started_at = time.perf_counter()

    def progress(stage: str, share: float) -> None:
        stages[stage] = round(time.perf_counter() - started_at, 1)
        print(f"\r{stage} {share:6.1%}   ", end="", file=sys.stderr)

    index = DenseIndex(open_rows(folder, arguments), folder, Settings(compact_tail=1))
    assert index.maintain(COLLECTION, progress=progress)
    seconds = time.perf_counter() - started_at
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report = {"seconds": round(seconds, 1), "finished_at_s": stages, "peak_rss_mb": round(peak)}
    (folder / "build.json").write_text(json.dumps(report))
    print(file=sys.stderr)


def open_rows(folder: Path, arguments: argparse.Namespace) -> Rows:
    mixtures = Mixtures(arguments.dim, arguments.embeddings)
    return cast(Rows, MadeRows(mixtures, arguments.n, folder / "published.json"))


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    mixtures = Mixtures(arguments.dim, arguments.embeddings)
    rows = open_rows(folder, arguments)
    queries = mixtures.draw(N_QUERIES, seed=[2])
    before_mb = rss_mb()
    started_at = time.perf_counter()
    index = DenseIndex(rows, folder, Settings())
    index.nearest(COLLECTION, "passages", queries[0], depth=10)
    ready_s = time.perf_counter() - started_at
    stats = index.stats(COLLECTION, "passages")
    unfiltered = {f"depth_{depth}": timed(index, queries, depth) for depth in DEPTHS}
    masks = {share: random_documents(rows, share) for share in SHARES}
    filtered = {share: timed(index, queries[:N_FILTERED], DEPTHS[0], mask) for share, mask in masks.items()}
    truth, *truths = exhaustive(rows, queries, [None, *masks.values()])
    recall = {
        f"recall_at_{depth}": recall_of(unfiltered[f"depth_{depth}"].pop("found"), truth[:, :depth])
        for depth in DEPTHS
    }
    for measured, truth in zip(filtered.values(), truths, strict=True):
        measured["recall_at_10"] = recall_of(measured.pop("found"), truth[:N_FILTERED, : DEPTHS[0]])
    return {
        "ready_s": round(ready_s, 3),
        "rss_of_index_mb": round(rss_mb() - before_mb),
        "size_mb": round(stats.size_bytes / 2**20, 1),
        "details": stats.details,
        **recall,
        **unfiltered,
        "depth_10_under_filter": {f"share_{share}": measured for share, measured in filtered.items()},
    }


def timed(
    index: DenseIndex, queries: Vectors32, depth: int, allowed: DocumentMask | None = None
) -> dict[str, Any]:
    for query in queries[:N_WARM_UP]:
        index.nearest(COLLECTION, "passages", query, depth=depth, allowed=allowed)
    seconds, cpu_seconds, found = [], [], []
    for query in queries:
        started_at, cpu_started_at = time.perf_counter(), time.thread_time()
        candidates = index.nearest(COLLECTION, "passages", query, depth=depth, allowed=allowed)
        seconds.append(time.perf_counter() - started_at)
        cpu_seconds.append(time.thread_time() - cpu_started_at)
        found.append(candidates.keys)
    p50, p95 = np.percentile(seconds, [50, 95]) * 1e3
    cpu_p50, cpu_p95 = np.percentile(cpu_seconds, [50, 95]) * 1e3
    return {
        "p50_ms": round(p50, 2),
        "p95_ms": round(p95, 2),
        "cpu_p50_ms": round(cpu_p50, 2),  # of the searching thread: says more on a busy machine
        "cpu_p95_ms": round(cpu_p95, 2),
        "found": np.array(found),
    }


def random_documents(rows: Rows, share: float) -> DocumentMask:
    n_documents = document_keys_of(np.array([rows.max_key(1, "passages")]))[0]
    return DocumentMask.of(1 + np.flatnonzero(np.random.default_rng(3).random(n_documents) < share))


def exhaustive(
    rows: Rows, queries: Vectors32, masks: Sequence[DocumentMask | None]
) -> list[NDArray[np.int64]]:
    """(q, 100) keys of the nearest under each mask, in one pass over the rows."""
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    heaps = [faiss.ResultHeap(len(queries), DEPTHS[-1], keep_max=True) for _ in masks]
    for block in rows.vectors_after(COLLECTION.key, "passages", 0):
        for heap, allowed in zip(heaps, masks, strict=True):
            flags = slice(None) if allowed is None else allowed.flags(block.document_keys)
            keys, vectors = block.keys[flags], block.vectors[flags]
            if len(keys):
                k = min(DEPTHS[-1], len(keys))
                scores, positions = faiss.knn(
                    queries, vectors.astype(np.float32), k, metric=faiss.METRIC_INNER_PRODUCT
                )
                heap.add_result(scores, keys[positions])
    for heap in heaps:
        heap.finalize()
    return [cast(NDArray[np.int64], heap.I) for heap in heaps]


def recall_of(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    shares = [np.isin(true, keys).mean() for true, keys in zip(truth, found, strict=True)]
    return round(float(np.mean(shares)), 4)


def rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--folder", type=Path, help="where the index is made; needs n x dim x 2 bytes")
    parser.add_argument("--built", type=Path, help="folder where a run that was cut off had built the index")
    arguments = parser.parse_args()
    folder: Path = arguments.built or Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        if not arguments.built:
            process = multiprocessing.get_context("spawn").Process(target=build, args=(folder, arguments))
            process.start()
            process.join()
        result = {
            "n": arguments.n,
            "dimensions": arguments.dim,
            "vectors": "mixed from real embeddings" if arguments.embeddings else "mixed from a Gaussian",
            "build": json.loads((folder / "build.json").read_text()),
            **measure(folder, arguments),
        }
    finally:
        shutil.rmtree(folder)
    write_result(f"dense_index_{arguments.n}", result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
