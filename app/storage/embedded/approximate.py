"""Search of large bases: quantised candidates from the nearest lists, then their exact cosines."""

import math
import mmap
from pathlib import Path
from threading import Lock

import faiss
import numpy as np

from app.storage.embedded.exact import SEARCH_THREADS, ExactSearch, Nearest, Query, cosines, selector
from app.storage.embedded.selection import Positions, Selection
from app.storage.index import Scores
from app.storage.rows import Vectors

EXACT_COUNT = 20_000
"""So few selected vectors are all scored: none is missed, and it costs less than probing. A tenth of 200,000
x 384 made vectors took 4.3 ms of processor time; probing took 10.6 ms and found 0.91 of the ten nearest."""

MAX_PROBE_FACTOR = 8
"""Under a filter, the matches nearest to a query are further off: among as many others as the filter
drops. So more lists are probed, in proportion to the root of that."""

MAX_CANDIDATE_FACTOR = 3
"""Those matches are also closer to each other in cosine, where quantised ones are hard to tell apart: so
more of them are candidates, in the same proportion up to here. That finds 0.975 of the same ten instead of
0.91."""

CANDIDATES_PER_RESULT = 3
"""At least. Of the true 100 nearest, 300 candidates held as many as 800 did (1,000,000 x 384)."""

RESIDENT_BYTES = 256 * 2**20
"""About how much of a file of vectors stays mapped."""

FAULT_BYTES = 64 * 2**10
"""What Linux maps around a page that is touched."""


class MappedVectors:
    """Float16 vectors in a file, read where they lie.

    Mapped pages count as resident memory of the process. So each read also lets go of a part of the file, in
    turn, as large as keeps the balance: reading there again costs a minor fault, not a disk access. All at
    once now and then would cost the same on average, but 6 ms to one search of ten.
    """

    def __init__(self, path: Path, *, n_vectors: int, dimensions: int) -> None:
        self._size_bytes = n_vectors * dimensions * 2
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), self._size_bytes, access=mmap.ACCESS_READ)
        self.all: Vectors = np.frombuffer(self._map, "<f2").reshape(n_vectors, dimensions)
        self._cursor = 0
        """Where the next part to let go of begins."""
        self._lock = Lock()

    def take(self, positions: Positions) -> Vectors:
        vectors = self.all[positions]
        if self._size_bytes > RESIDENT_BYTES:
            self._let_go(len(positions) * FAULT_BYTES / RESIDENT_BYTES)
        return vectors

    def _let_go(self, share: float) -> None:
        n_bytes = math.ceil(min(1.0, share) * self._size_bytes / mmap.PAGESIZE) * mmap.PAGESIZE
        with self._lock:
            start = self._cursor
            self._cursor = start + n_bytes if start + n_bytes < self._size_bytes else 0
        self._map.madvise(mmap.MADV_DONTNEED, start, min(n_bytes, self._size_bytes - start))


class ApproximateSearch:
    def __init__(
        self, index: faiss.IndexIVF, vectors: MappedVectors, *, n_probes: int, n_candidates: int
    ) -> None:
        self._index = index
        self._vectors = vectors
        self._n_probes = n_probes
        self._n_candidates = n_candidates

    def nearest(self, query: Query, depth: int, selection: Selection) -> Nearest:
        """`depth` selected positions or more, most of those of greatest cosine among them."""
        if selection.n_selected <= max(EXACT_COUNT, depth):
            return self._exactly(query, depth, selection)
        thinned = (selection.n / selection.n_selected) ** 0.5
        n_candidates = max(
            round(min(MAX_CANDIDATE_FACTOR, thinned) * self._n_candidates), CANDIDATES_PER_RESULT * depth
        )
        n_probes = min(round(min(MAX_PROBE_FACTOR, thinned) * self._n_probes), self._index.nlist)
        positions = self._candidates(
            query, min(n_candidates, selection.n_selected), selection, n_wanted=depth, n_probes=n_probes
        )
        return Nearest(positions, self.scores(query, positions), is_exact=False)

    def scores(self, query: Query, positions: Positions) -> Scores:
        return cosines(self._vectors.take(positions), query)

    def _exactly(self, query: Query, depth: int, selection: Selection) -> Nearest:
        positions = selection.positions()
        if not positions.size:
            return Nearest(positions, np.empty(0, np.float32), is_exact=True)
        search = ExactSearch(self._vectors.take(positions))
        found = search.nearest(query, depth, Selection.everything(len(positions)))
        return Nearest(positions[found.positions], found.scores, is_exact=True)

    def _candidates(
        self, query: Query, n_candidates: int, selection: Selection, *, n_wanted: int, n_probes: int
    ) -> Positions:
        """Probe more lists until they hold enough; all lists hold all that are selected."""
        faiss.omp_set_num_threads(SEARCH_THREADS)
        while True:
            parameters = faiss.IVFSearchParameters(sel=selector(selection), nprobe=n_probes)
            _, positions = self._index.search(query[np.newaxis], n_candidates, params=parameters)
            found: Positions = positions[0, positions[0] >= 0]
            if len(found) >= n_wanted or n_probes >= self._index.nlist:
                return found
            n_probes = min(4 * n_probes, self._index.nlist)
