"""Batches cut by tokens, of groups of about the same length."""

import random
from collections.abc import Iterator, Sequence

from torch.utils.data import Sampler

POOL = 2_000
"""Groups that are sorted by length together: more waste less padding and mix less."""


class GroupBatches(Sampler[list[int]]):
    """Places of the groups of each batch. Every epoch has another order, decided by seed and epoch.

    Args:
        lengths: of each group, padded.
        sizes: pairs in each group.
        max_batch_tokens: padding included; a group is never divided.
    """

    def __init__(
        self, lengths: Sequence[int], sizes: Sequence[int], *, max_batch_tokens: int, seed: int
    ) -> None:
        self._lengths, self._sizes = lengths, sizes
        self._max_batch_tokens = max_batch_tokens
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        choice = random.Random(f"{self._seed}-{self._epoch}")  # noqa: S311  an order, not a secret
        places = list(range(len(self._lengths)))
        choice.shuffle(places)
        batches: list[list[int]] = []
        for begin in range(0, len(places), POOL):
            pool = sorted(places[begin : begin + POOL], key=self._lengths.__getitem__)
            of_pool = list(self._cut(pool))
            choice.shuffle(of_pool)
            batches += of_pool
        yield from batches

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _cut(self, places: Sequence[int]) -> Iterator[list[int]]:
        batch: list[int] = []
        n_pairs = 0
        for place in places:
            n = n_pairs + self._sizes[place]
            if batch and n * self._lengths[place] > self._max_batch_tokens:
                yield batch
                batch, n = [], self._sizes[place]
            batch.append(place)
            n_pairs = n
        if batch:
            yield batch
