"""The index seam: derived, rebuildable, found by vector or by words. Rows are the truth.

Implementations: `app.storage.embedded.EmbeddedIndex` (FAISS and Tantivy files beside SQLite). The contract is
`tests/storage/index_contract.py`; every implementation passes it unchanged.

Promise to readers: when `apply` has returned, the next search sees the change, in every process.
Deleted keys are never returned, and exactly min(depth, live matches) candidates are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, View
from app.storage.rows import Keys

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ranked by descending score, ties by ascending key."""

    keys: Keys  # (n,)
    document_keys: Keys  # (n,)
    scores: Scores  # (n,)
    generation: int
    is_exact: bool
    """Whether the ranking is that of exhaustive search."""


@dataclass(frozen=True, slots=True)
class IndexStats:
    generation: int
    n_base: int
    n_tail: int
    n_deleted: int
    """Deleted vectors that still occupy the base."""
    size_bytes: int
    details: Mapping[str, object]
    """Kind of base index and, where approximate, recall@10 measured when it was built."""


class Index(Protocol):
    def nearest(
        self,
        collection: Collection,
        view: View,
        query: NDArray[np.float32],
        *,
        depth: int,
        documents: Keys | None = None,
    ) -> Candidates:
        """The `depth` vectors of greatest cosine with `query` (d,), which has length 1.

        `documents` are keys, ascending: where given, others are treated as if they were not there. What is
        derived from an array that is not writable may be kept for the next search with the same array.
        """

    def similarities(
        self, collection: Collection, view: View, query: NDArray[np.float32], keys: Sequence[int]
    ) -> Scores:
        """Exact cosine with each of these keys, in their order; NaN for keys that are not live."""

    def matching(
        self, collection: Collection, text: str, *, depth: int, documents: Keys | None = None
    ) -> Candidates:
        """The `depth` passages that have any word of `text`, ranked by BM25; `documents` as for `nearest`.

        Nothing in `text` is an operator; without a word it matches nothing. A score does not depend on
        `documents`.

        Raises:
            StorageDamaged: the files of the words are damaged, and not yet replaced by the writer.
        """

    def apply(self, collection: Collection) -> None:
        """Make everything that is committed in the rows visible to searches. Called by the one writer."""

    def maintain(
        self, collection: Collection, *, progress: Callable[[str, float], None] | None = None
    ) -> bool:
        """Build and publish a new base where worthwhile; searches go on meanwhile. True: one was published.

        `progress` gets (stage, share done 0..1). Interrupting it at any point loses nothing.
        """

    def stats(self, collection: Collection, view: View) -> IndexStats: ...

    def drop(self, collection_key: int) -> None:
        """Delete the files of a collection that is gone from the rows."""

    def sweep(self) -> Sequence[int]:
        """Delete the files of all collections that the rows do not have; returns their keys.

        What is left over from before a crash between the end of a collection's rows and `drop`.
        """

    def close(self) -> None: ...
