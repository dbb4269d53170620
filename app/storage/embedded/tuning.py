"""Choosing how an approximate base is searched, by measuring its recall against exhaustive search."""

from collections.abc import Callable

import faiss
import numpy as np
from numpy.typing import NDArray

from app.storage.embedded.approximate import CANDIDATES_PER_RESULT, MappedVectors
from app.storage.embedded.bases import Approximation
from app.storage.embedded.selection import Positions
from app.storage.embedded.training import Quantiser

RECALL = 0.99
"""Of the true 10 nearest, on average. Above what is promised (0.985): 500 queries measure it to within
0.003, and real queries are not drawn from the documents."""

N_QUERIES = 500
DEPTH = 100
PROBES = (128, 192, 256, 384, 512, 768, 1024)
"""Lists to look into; fewer would do for some data, but save less than a millisecond and make results at
greater depths and under filters poorer."""

CANDIDATES = (200, 300, 400, 600, 800)
BLOCK = 65_536
SEED = 2


def tune(quantiser: Quantiser, mapped: MappedVectors, progress: Callable[[float], None]) -> Approximation:
    """The cheapest setting that reaches the recall, or the most thorough one."""
    index = quantiser.index
    rng = np.random.default_rng(SEED)
    n_vectors = len(mapped.all)
    sampled = np.sort(rng.choice(n_vectors, min(N_QUERIES, n_vectors), replace=False))
    queries = mapped.take(sampled).astype(np.float32)
    truth = _others(_exhaustive(mapped, queries, progress), sampled)
    for n_probes in [probes for probes in PROBES if probes < index.nlist] or [index.nlist]:
        parameters = faiss.IVFSearchParameters(nprobe=n_probes)
        _, candidates = index.search(queries, CANDIDATES[-1], params=parameters)
        for n_candidates in CANDIDATES:
            recall_at_10 = _recall(truth[:, :10], candidates[:, :n_candidates])
            if recall_at_10 >= RECALL:
                break
        if recall_at_10 >= RECALL:
            break
    n_at_100 = max(n_candidates, 100 * CANDIDATES_PER_RESULT)
    return Approximation(
        n_lists=index.nlist,
        n_trained=quantiser.n_trained,
        n_probes=n_probes,
        n_candidates=n_candidates,
        recall_at_10=round(recall_at_10, 4),
        recall_at_100=round(_recall(truth, candidates[:, :n_at_100]), 4),
    )


def _exhaustive(
    mapped: MappedVectors, queries: NDArray[np.float32], progress: Callable[[float], None]
) -> Positions:
    """(q, 101) positions of the nearest, best first."""
    n_vectors = len(mapped.all)
    heap = faiss.ResultHeap(len(queries), min(DEPTH + 1, n_vectors), keep_max=True)
    for start in range(0, n_vectors, BLOCK):
        block = np.arange(start, min(start + BLOCK, n_vectors))
        scores, positions = faiss.knn(
            queries,
            mapped.take(block).astype(np.float32),
            min(DEPTH + 1, len(block)),
            metric=faiss.METRIC_INNER_PRODUCT,
        )
        heap.add_result(scores, positions + start)
        progress((block[-1] + 1) / n_vectors)
    heap.finalize()
    return heap.I  # type: ignore[no-any-return]


def _others(nearest: Positions, queries: Positions) -> Positions:
    """(q, 100): without the query itself, which is among the vectors."""
    return np.array(
        [row[row != query][:DEPTH] for row, query in zip(nearest, queries, strict=True)], np.int64
    )


def _recall(truth: Positions, candidates: Positions) -> float:
    """Candidates are ranked by exact cosine afterwards, so each true one among them is found."""
    found = [np.isin(true, among).mean() for true, among in zip(truth, candidates, strict=True)]
    return float(np.mean(found))
