"""Training the quantiser of an approximate base on a sample."""

from collections.abc import Callable
from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from app.storage.embedded.approximate import MappedVectors

MAX_LISTS = 8192
"""Finding the nearest lists is a scan over their centroids: twice as many would cost more than they save."""

MIN_SAMPLE_PER_LIST = 39
"""k-means complains about less."""

SAMPLE_PER_LIST = 40
MAX_GROWTH = 2
"""Of a collection since its quantiser was trained; by then it may speak of other things."""


ITERATIONS = 6
SEED = 1


@dataclass(frozen=True, slots=True)
class Quantiser:
    index: faiss.IndexIVFRaBitQFastScan
    """Inverted lists of 1-bit codes (RaBitQ: Gao and Long 2024), still empty."""
    n_trained: int
    """Vectors from which the sample was drawn."""

    def fits(self, n_vectors: int) -> bool:
        """Whether it saves training another one: most time of building a base goes into that."""
        return n_vectors < MAX_GROWTH * self.n_trained


def train(mapped: MappedVectors, progress: Callable[[float], None]) -> Quantiser:
    n_vectors, dimensions = mapped.all.shape
    n_lists = lists_for(n_vectors)
    rng = np.random.default_rng(SEED)
    n_sampled = min(n_vectors, SAMPLE_PER_LIST * n_lists)
    sample = mapped.take(np.sort(rng.choice(n_vectors, n_sampled, replace=False))).astype(np.float32)
    index = faiss.index_factory(dimensions, f"IVF{n_lists},RaBitQfs", faiss.METRIC_INNER_PRODUCT)
    index.quantizer.add(_centroids(sample, n_lists, progress))
    index.train(sample)  # leaves a quantizer that is full as it is
    return Quantiser(index, n_vectors)


def lists_for(n_vectors: int) -> int:
    """About 4 sqrt(n), a power of two; few enough to be trained."""
    return int(min(MAX_LISTS, 2 ** round(np.log2(4 * np.sqrt(n_vectors))), n_vectors // MIN_SAMPLE_PER_LIST))


def _centroids(
    sample: NDArray[np.float32], n_lists: int, progress: Callable[[float], None]
) -> NDArray[np.float32]:
    """(n_lists, d), by k-means on the sphere; one iteration at a time can be followed and stopped."""
    centroids = None
    for iteration in range(ITERATIONS):
        kmeans = faiss.Kmeans(sample.shape[1], n_lists, niter=1, spherical=True, seed=SEED)
        kmeans.train(sample, init_centroids=centroids)
        centroids = kmeans.centroids
        progress((iteration + 1) / ITERATIONS)
    return centroids  # type: ignore[return-value]
