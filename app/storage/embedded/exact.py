"""Exhaustive search over float16 vectors that stay where they are: in a mapped file or in a buffer."""

from typing import NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from app.storage.embedded.selection import Positions, Selection
from app.storage.index import Scores
from app.storage.rows import Vectors

Query = NDArray[np.float32]

SEARCH_THREADS = 1
"""Per search. Requests are the parallelism of a service: more here lets every request thread start an
OpenMP team of its own, and they stall each other (100,000 x 384, busy machine: 21 ms with 2, 5 ms with 1)."""

TIE = 4e-6
"""Scores closer than this may be equal: FAISS sums in float32, in another order than `cosines`."""

SLACK = 8
"""Candidates beyond the depth, so that most near-ties at the border are seen without a second pass."""

BLOCK = 4096
"""Vectors turned into float64 at once."""


class Nearest(NamedTuple):
    """In no order: at least as many as were wanted, if there are."""

    positions: Positions
    scores: Scores
    is_exact: bool
    """Whether all of greatest cosine are certainly among them."""


def cosines(vectors: Vectors, query: Query) -> Scores:
    """(n,) cosines of (n, d) with (d,), the same for the same vector wherever it is stored.

    Products of float16 and float32 are exact in float64 and their sums nearly so; rounding to float32
    hides the order of summation, and equal vectors tie exactly. No BLAS: it starts threads.
    """
    wide = query.astype(np.float64)
    scores = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK].astype(np.float64)
        scores[start : start + BLOCK] = np.einsum("nd,d->n", block, wide)
    return np.fmin(np.fmax(scores, -1), 1)  # unlike `clip`, no NaN for a vector damaged on disk


def over(vectors: Vectors) -> faiss.IndexScalarQuantizer:
    """An inner product index that reads `vectors` in place: contiguous, outliving it, never changing.

    A view is what FAISS itself makes of a memory-mapped file, with an owner that keeps the file open;
    here the owner is nobody, and the caller keeps the array.
    """
    codes = vectors.view(np.uint8).reshape(-1)
    index = faiss.IndexScalarQuantizer(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    nobody = faiss.MaybeOwnedVectorUInt8()
    index.codes = faiss.MaybeOwnedVectorUInt8.create_view(faiss.swig_ptr(codes), codes.nbytes, nobody.owner)
    index.ntotal = len(vectors)
    return index


def selector(selection: Selection) -> faiss.IDSelector | None:
    return None if selection.bits is None else faiss.IDSelectorBitmap(selection.bits)


class ExactSearch:
    def __init__(self, vectors: Vectors) -> None:
        """`vectors` (n, d) are contiguous and never change."""
        self.vectors = vectors
        self._index = over(vectors)

    def nearest(self, query: Query, depth: int, selection: Selection) -> Nearest:
        """The `depth` selected positions of greatest cosine, and all that tie with the last of them."""
        positions = self._candidates(query, depth, selection)
        return Nearest(positions, self.scores(query, positions), is_exact=True)

    def scores(self, query: Query, positions: Positions) -> Scores:
        return cosines(self.vectors[positions], query)

    def _candidates(self, query: Query, depth: int, selection: Selection) -> Positions:
        n_fetched = depth + SLACK
        if n_fetched >= selection.n_selected:
            return selection.positions()
        faiss.omp_set_num_threads(SEARCH_THREADS)  # a setting of the calling thread
        parameters = faiss.SearchParameters(sel=selector(selection))
        scores, positions = self._index.search(query[np.newaxis], n_fetched, params=parameters)
        border = scores[0, depth - 1]
        if border - scores[0, -1] > TIE:
            return positions[0, scores[0] >= border - TIE]  # type: ignore[no-any-return]
        # More of them tie with the last one than were fetched: fetch all that do.
        _, _, positions = self._index.range_search(query[np.newaxis], float(border) - TIE, params=parameters)
        return positions  # type: ignore[no-any-return]
