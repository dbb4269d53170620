"""What one search sees of one (collection, view): a base, the tail after it, and what of both is live."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.storage.embedded.bases import Base
from app.storage.embedded.exact import Query
from app.storage.embedded.masks import DocumentMask
from app.storage.embedded.segments import Found, Segment, Tail
from app.storage.index import Candidates, Scores
from app.storage.rows import Keys, VectorBlock

VECTOR_OVERHEAD_BYTES = 16
"""Both keys of a vector of the tail."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Immutable: searches go on with the one they started with."""

    version: int
    """`Rows.data_version` before anything in it was read."""
    base: Base | None
    base_segment: Segment | None
    """The base's vectors without those deleted since."""
    tail: Tail | None
    max_key: int
    """Up to here all live vectors are in it."""
    sequence: int
    """Up to here all deletions are."""

    @classmethod
    def of(cls, base: Base | None, version: int) -> "Snapshot":
        """The base as it was published, nothing deleted since."""
        if base is None:
            return cls(version, None, None, None, 0, 0)
        return cls(version, base, base.segment, None, base.generation.max_key, 0)

    @property
    def segments(self) -> Sequence[Segment]:
        tail = None if self.tail is None else self.tail.segment
        return [segment for segment in (self.base_segment, tail) if segment is not None]

    @property
    def number(self) -> int:
        """Of the generation; 0 without a base."""
        return 0 if self.base is None else self.base.generation.number

    @property
    def n_tail(self) -> int:
        return 0 if self.tail is None else self.tail.segment.live.n_selected

    @property
    def n_tail_with_deleted(self) -> int:
        return 0 if self.tail is None else self.tail.segment.live.n

    @property
    def n_base(self) -> int:
        """Deleted ones included."""
        return 0 if self.base_segment is None else self.base_segment.live.n

    @property
    def n_deleted(self) -> int:
        """Of the base."""
        return 0 if self.base_segment is None else self.n_base - self.base_segment.live.n_selected

    @property
    def resident_bytes(self) -> int:
        n_bytes = 0 if self.base is None else self.base.resident_bytes
        if self.tail is not None:
            buffers = self.tail.buffers
            n_bytes += buffers.vectors.nbytes + VECTOR_OVERHEAD_BYTES * len(buffers.keys)
        return n_bytes

    def with_vectors(self, block: VectorBlock) -> "Snapshot":
        """Newer ones, ascending."""
        tail = Tail.of(block) if self.tail is None else self.tail.appended(block)
        return replace(self, tail=tail, max_key=int(block.keys[-1]))

    def without(self, dead: Keys, *, sequence: int) -> "Snapshot":
        if not dead.size:
            return replace(self, sequence=sequence)
        return replace(
            self,
            sequence=sequence,
            base_segment=self.base_segment and self.base_segment.without(dead),
            tail=self.tail and self.tail.without(dead),
        )

    def nearest(self, query: Query, depth: int, allowed: DocumentMask | None) -> Candidates:
        found = [segment.nearest(query, depth, allowed) for segment in self.segments]
        return _ranked(found, depth, generation=self.number)

    def similarities(self, query: Query, keys: Keys) -> Scores:
        """NaN for keys that are not live."""
        scores = np.full(len(keys), np.nan, np.float32)
        for segment in self.segments:
            scores = np.fmax(scores, segment.similarities(query, keys))
        return scores


def _ranked(found: Sequence[Found], depth: int, *, generation: int) -> Candidates:
    keys = np.concatenate([np.empty(0, np.int64), *(part.keys for part in found)])
    document_keys = np.concatenate([np.empty(0, np.int64), *(part.document_keys for part in found)])
    scores = np.concatenate([np.empty(0, np.float32), *(part.scores for part in found)])
    order = np.lexsort((keys, -scores))[:depth]
    return Candidates(
        keys[order],
        document_keys[order],
        scores[order],
        generation=generation,
        is_exact=all(part.is_exact for part in found),
    )
