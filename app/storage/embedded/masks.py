"""Filters as the dense index applies them: which vectors belong to documents that are let through."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

import numpy as np

from app.storage.embedded.selection import Flags
from app.storage.rows import Keys

KEPT_MASKS = 16
"""About two bytes for each vector of the collection and eight for each document let through."""

KEPT_FLAGS = 4
"""Of each mask: those of the bases and tails of both views."""

WORTH_KEEPING = 50_000
"""Vectors; looking up fewer takes less than 0.1 ms."""


class DocumentMask:
    """The documents that a filter lets through."""

    def __init__(self, first: int, allowed: Flags) -> None:
        """`allowed` says whether document key `first + i` is let through; keys outside are not."""
        self._first = first
        self._allowed = allowed
        self._kept: list[tuple[Keys, Flags]] = []

    @classmethod
    def of(cls, document_keys: Iterable[int] | Keys) -> "DocumentMask":
        keys = (
            document_keys if isinstance(document_keys, np.ndarray) else np.fromiter(document_keys, np.int64)
        )
        if not keys.size:
            return cls(0, np.zeros(0, np.bool_))
        first = int(keys.min())
        allowed = np.zeros(int(keys.max()) - first + 1, np.bool_)
        allowed[keys - first] = True
        return cls(first, allowed)

    def flags(self, document_keys: Keys) -> Flags:
        """Whether each of these is let through. The array must not change: its flags may be kept."""
        for known, flags in self._kept:
            if known is document_keys:
                return flags
        flags = self._looked_up(document_keys)
        if len(document_keys) >= WORTH_KEEPING:
            self._kept = [(document_keys, flags), *self._kept][:KEPT_FLAGS]
        return flags

    def _looked_up(self, document_keys: Keys) -> Flags:
        n = len(self._allowed)
        if not n or not document_keys.size:
            return np.zeros(len(document_keys), np.bool_)
        offsets = document_keys - self._first
        is_within = (offsets >= 0) & (offsets < n)
        if is_within.all():
            return np.take(self._allowed, offsets)
        return is_within & np.take(self._allowed, offsets.clip(0, n - 1))


class Masks:
    """Of the arrays of document keys that were used last. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[int, tuple[Keys, DocumentMask]] = OrderedDict()
        """By identity of the array, which lives as long as its entry."""

    def of(self, documents: Keys) -> DocumentMask:
        if documents.flags.writeable:
            return DocumentMask.of(documents)
        with self._lock:
            kept = self._kept.get(id(documents))
            if kept is not None:
                self._kept.move_to_end(id(documents))
                return kept[1]
        mask = DocumentMask.of(documents)
        with self._lock:
            self._kept[id(documents)] = (documents, mask)
            while len(self._kept) > KEPT_MASKS:
                self._kept.popitem(last=False)
        return mask
