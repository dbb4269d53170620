"""A run of vectors with ascending keys, searched as one; the base is one, the tail is another."""

from dataclasses import dataclass, replace

import numpy as np

from app.storage.embedded.approximate import ApproximateSearch
from app.storage.embedded.exact import ExactSearch, Query
from app.storage.embedded.masks import DocumentMask
from app.storage.embedded.selection import Flags, Positions, Selection
from app.storage.index import Scores
from app.storage.rows import Keys, VectorBlock, Vectors


@dataclass(frozen=True, slots=True)
class Found:
    """In no order."""

    keys: Keys
    document_keys: Keys
    scores: Scores
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Segment:
    keys: Keys
    document_keys: Keys
    search: ExactSearch | ApproximateSearch
    live: Selection

    def without(self, dead: Keys) -> "Segment":
        """Keys that are not here are ignored."""
        positions, is_here = self._positions(dead)
        return replace(self, live=self.live.without(positions[is_here]))

    def nearest(self, query: Query, depth: int, allowed: DocumentMask | None) -> Found:
        """At least min(depth, live and allowed) vectors; those of greatest cosine are among them."""
        selection = self.live
        if allowed is not None:
            selection = selection.both(allowed.flags(self.document_keys))
        positions, scores, is_exact = self.search.nearest(query, depth, selection)
        return Found(self.keys[positions], self.document_keys[positions], scores, is_exact)

    def similarities(self, query: Query, keys: Keys) -> Scores:
        """NaN where a key is not here or not live."""
        positions, is_here = self._positions(keys)
        is_here[is_here] = self.live.contains(positions[is_here])
        scores = np.full(len(keys), np.nan, np.float32)
        scores[is_here] = self.search.scores(query, positions[is_here])
        return scores

    def _positions(self, keys: Keys) -> tuple[Positions, Flags]:
        """Where each key is, and whether it is."""
        positions = np.searchsorted(self.keys, keys).clip(0, len(self.keys) - 1)
        return positions, self.keys[positions] == keys


@dataclass(frozen=True, slots=True)
class Buffers:
    """Room for vectors; rows once written never change, so older segments go on reading theirs."""

    keys: Keys
    document_keys: Keys
    vectors: Vectors

    @classmethod
    def with_room(cls, n: int, dimensions: int) -> "Buffers":
        return cls(np.empty(n, np.int64), np.empty(n, np.int64), np.empty((n, dimensions), np.float16))

    def write(self, start: int, block: VectorBlock) -> None:
        end = start + len(block.keys)
        self.keys[start:end] = block.keys
        self.document_keys[start:end] = block.document_keys
        self.vectors[start:end] = block.vectors


@dataclass(frozen=True, slots=True)
class Tail:
    """A segment that grows by making the next one over the same buffers, twice as large when full."""

    segment: Segment
    buffers: Buffers

    @classmethod
    def of(cls, block: VectorBlock) -> "Tail":
        buffers = Buffers.with_room(len(block.keys), block.vectors.shape[1])
        buffers.write(0, block)
        return cls._over(buffers, len(block.keys), Selection.everything(len(block.keys)))

    def appended(self, block: VectorBlock) -> "Tail":
        """Only the newest tail over its buffers may be appended to, by one thread at a time."""
        n_before = len(self.segment.keys)
        n = n_before + len(block.keys)
        buffers = self.buffers
        if n > len(buffers.keys):
            buffers = Buffers.with_room(2 * n, block.vectors.shape[1])
            before = VectorBlock(self.buffers.keys, self.buffers.document_keys, self.buffers.vectors)
            buffers.write(0, _first(before, n_before))
        buffers.write(n_before, block)
        return self._over(buffers, n, self.segment.live.extended(n))

    def without(self, dead: Keys) -> "Tail":
        return replace(self, segment=self.segment.without(dead))

    @classmethod
    def _over(cls, buffers: Buffers, n: int, live: Selection) -> "Tail":
        search = ExactSearch(buffers.vectors[:n])
        return cls(Segment(buffers.keys[:n], buffers.document_keys[:n], search, live), buffers)


def _first(block: VectorBlock, n: int) -> VectorBlock:
    return VectorBlock(block.keys[:n], block.document_keys[:n], block.vectors[:n])
