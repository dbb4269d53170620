"""Shapes of what a network computes at once: which sequences share a batch, and how they are padded."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.engine.tokenizer import Ids

STEPS = ((16, 16), (32, 8), (192, 16))
LONG_STEP = 32
"""Lengths are rounded up to few values, because runtimes keep prepared code and memory for every shape seen:
to 16, 24 or 32, as most queries are, to multiples of 16 up to 192, and of 32 above: 15 lengths up to 256."""


def padded_length(n_tokens: int) -> int:
    """
    >>> [padded_length(n) for n in (1, 16, 17, 33, 128, 129, 193, 256)]
    [16, 16, 24, 48, 128, 144, 224, 256]
    """
    step = next((step for longest, step in STEPS if n_tokens <= longest), LONG_STEP)
    return -(-n_tokens // step) * step


def even_budget(lengths: Sequence[int], *, n_lanes: int, max_batch_tokens: int) -> int:
    """Tokens per batch, at most max_batch_tokens, with which lanes that share the batches have as few of them
    as they can, and end at about the same time.

    >>> even_budget([160] * 20, n_lanes=2, max_batch_tokens=1024)  # 4 batches of 5, where 6, 6, 6 and 2 fit
    880
    """
    padded_lengths = [padded_length(n) for n in lengths]
    n_rounds = -(-sum(padded_lengths) // (n_lanes * max_batch_tokens))
    if not n_rounds:
        return max_batch_tokens
    share = -(-sum(padded_lengths) // (n_lanes * n_rounds))
    return min(max_batch_tokens, share + max(padded_lengths) // 2)


def cut_batches(lengths: Sequence[int], *, max_batch_tokens: int) -> Iterator[list[int]]:
    """Group sequences of similar length into batches of at most max_batch_tokens, padding counted.

    Yields the positions of each batch's sequences, longest first. A sequence of less than half the batch's
    length begins a new batch: padding it would cost more than another call of the network.
    """
    rows: list[int] = []
    length = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        own = padded_length(lengths[i])
        if rows and ((len(rows) + 1) * length > max_batch_tokens or 2 * own < length):
            yield rows
            rows = []
        length = own if not rows else length
        rows.append(i)
    if rows:
        yield rows


def cut_batches_in_order(lengths: Sequence[int], *, max_batch_tokens: int) -> Iterator[list[int]]:
    """As `cut_batches`, but neighbours stay together: what comes first is computed first.

    >>> list(cut_batches_in_order([16, 30, 10, 40], max_batch_tokens=64))
    [[0, 1], [2], [3]]
    """
    rows: list[int] = []
    length = 0
    for i, n_tokens in enumerate(lengths):
        longest = max(length, padded_length(n_tokens))
        if rows and (len(rows) + 1) * longest > max_batch_tokens:
            yield rows
            rows, longest = [], padded_length(n_tokens)
        length = longest
        rows.append(i)
    if rows:
        yield rows


def padded(
    sequences: Sequence[Ids], *, pad_id: int, max_tokens: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and mask (n, t) of sequences, t the padded length of the longest, but at most max_tokens."""
    length = min(padded_length(max(len(s) for s in sequences)), max_tokens)
    ids = np.full((len(sequences), length), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask
