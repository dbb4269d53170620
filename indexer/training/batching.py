"""Batches cut by tokens, in few shapes.

PyTorch keeps a compiled primitive for every shape it meets, and with free lengths that cache grew to
gigabytes. So lengths are rounded up to a few values, and all batches of a length but the last one have the
same number of rows.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from torch.utils.data import Sampler
from transformers import BatchEncoding

LENGTHS = (16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512)


def rounded(length: int) -> int:
    """
    >>> rounded(16), rounded(17), rounded(513)
    (16, 24, 1024)
    """
    if length > LENGTHS[-1]:
        return -(-length // LENGTHS[-1]) * LENGTHS[-1]
    return LENGTHS[bisect_left(LENGTHS, length)]


class TokenBatches(Sampler[list[int]]):
    """Batches of row numbers whose padded size is at most `batch_tokens`, unless a single row is longer.

    Rows of one rounded length come together. What is left over of a length joins the next longer one, so that
    at most one batch is small. Their number is the same in every epoch. Shuffled, an epoch is a permutation
    that (seed, epoch) decides, which makes an interrupted training repeatable.
    """

    def __init__(self, lengths: Sequence[int], *, batch_tokens: int, seed: int | None) -> None:
        """
        Args:
            lengths: (n,), tokens of each row.
            seed: None for batches in ascending length without shuffling.
        """
        self._rounded = np.array([rounded(length) for length in lengths], dtype=np.int64)
        self._batch_tokens = batch_tokens
        self._seed = seed
        self._epoch = 0
        self._n_batches = sum(1 for _ in self._cut(np.arange(len(lengths))))

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return self._n_batches

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(len(self._rounded))
        if self._seed is None:
            yield from self._cut(order)
            return
        random = np.random.default_rng((self._seed, self._epoch))
        batches = list(self._cut(random.permutation(order)))
        yield from (batches[i] for i in random.permutation(len(batches)))

    def _cut(self, order: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[list[int]]:
        left: list[int] = []
        for length in np.unique(self._rounded):
            rows = left + order[self._rounded[order] == length].tolist()
            size = max(1, self._batch_tokens // int(length))
            n_full = len(rows) // size * size
            yield from (rows[i : i + size] for i in range(0, n_full, size))
            left = rows[n_full:]
        if left:
            yield left


class RoundingCollator:
    """Pads a batch to the rounded length of its longest row, but not beyond what the model takes.

    Args:
        collator_for: makes a collator of transformers that pads to the length given.
    """

    def __init__(self, collator_for: Callable[[int], Callable[[list[Any]], Any]], *, max_tokens: int) -> None:
        self._collator_for = collator_for
        self._max_tokens = max_tokens
        self._collators: dict[int, Callable[[list[Any]], Any]] = {}

    def __call__(self, rows: list[dict[str, Any]]) -> BatchEncoding:
        length = min(rounded(max(len(row["input_ids"]) for row in rows)), self._max_tokens)
        if length not in self._collators:
            self._collators[length] = self._collator_for(length)
        batch: BatchEncoding = self._collators[length](rows)
        return batch
