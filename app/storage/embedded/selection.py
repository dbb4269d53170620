"""Which vectors a search may return: packed bits that FAISS reads, never changed once made."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Selection:
    """A subset of the positions 0 .. n - 1."""

    n: int
    n_selected: int
    bits: NDArray[np.uint8] | None
    """Position i is bit i % 8 of byte i // 8; None selects all."""

    @classmethod
    def everything(cls, n: int) -> "Selection":
        return cls(n, n, None)

    @classmethod
    def of_flags(cls, flags: Flags) -> "Selection":
        n_selected = int(np.count_nonzero(flags))
        if n_selected == len(flags):
            return cls.everything(n_selected)
        return cls(len(flags), n_selected, np.packbits(flags, bitorder="little"))

    def flags(self) -> Flags:
        """(n,)"""
        if self.bits is None:
            return np.ones(self.n, np.bool_)
        return np.unpackbits(self.bits, count=self.n, bitorder="little").view(np.bool_)

    def positions(self) -> Positions:
        """Those selected, ascending."""
        return np.arange(self.n) if self.bits is None else np.flatnonzero(self.flags())

    def contains(self, positions: Positions) -> Flags:
        if self.bits is None:
            return np.ones(len(positions), np.bool_)
        is_selected: Flags = (self.bits[positions >> 3] & _bit(positions)) != 0
        return is_selected

    def without(self, positions: Positions) -> "Selection":
        positions = np.unique(positions)
        positions = positions[self.contains(positions)]
        if not positions.size:
            return self
        bits = np.packbits(self.flags(), bitorder="little") if self.bits is None else self.bits.copy()
        np.bitwise_and.at(bits, positions >> 3, ~_bit(positions))
        return Selection(self.n, self.n_selected - len(positions), bits)

    def extended(self, n: int) -> "Selection":
        """With the new positions up to n selected."""
        if self.bits is None:
            return Selection.everything(n)
        return Selection.of_flags(np.concatenate([self.flags(), np.ones(n - self.n, np.bool_)]))

    def both(self, flags: Flags) -> "Selection":
        return Selection.of_flags(flags if self.bits is None else self.flags() & flags)


def _bit(positions: Positions) -> NDArray[np.uint8]:
    """Of each position within its byte."""
    return np.left_shift(np.uint8(1), (positions & 7).astype(np.uint8))
