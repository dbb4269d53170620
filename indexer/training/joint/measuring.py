"""How well the joint model does on held-out groups, quickly: for choosing checkpoints, not for claims."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from indexer.training.joint.batches import GroupBatches
from indexer.training.joint.pairs import EncodedGroup
from indexer.training.prepared import Measure
from indexer.training.request import Metrics

METRIC = "span_f1"
MAX_ANSWER_TOKENS = 30

Collate = Callable[[Sequence[EncodedGroup]], dict[str, torch.Tensor]]
Array = NDArray[np.float32]


def measure_groups(groups: Sequence[EncodedGroup], *, collate: Collate, batch_tokens: int) -> Measure:
    """span_f1: mean overlap, in tokens, of found and true answers, of pairs that have one.
    first: share of the questions with rivals whose relevant passage has the greatest logit."""
    batches = list(
        GroupBatches(
            [group.length for group in groups],
            [len(group.pairs) for group in groups],
            max_batch_tokens=batch_tokens,
            seed=0,
        )
    )

    def measure(module: torch.nn.Module) -> Metrics:
        module.eval()
        overlaps: list[float] = []
        firsts: list[float] = []
        for places in batches:
            batch = collate([groups[place] for place in places])
            with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
                relevance, start, end = module(
                    batch["input_ids"], batch["attention_mask"], batch["token_type_ids"]
                )
            arrays = {name: tensor.numpy() for name, tensor in batch.items()}
            overlaps += _overlaps(start.float().numpy(), end.float().numpy(), arrays)
            firsts += _firsts(relevance.float().numpy(), arrays)
        metrics = {METRIC: float(np.mean(overlaps)) if overlaps else 0.0}
        return {**metrics, "first": float(np.mean(firsts))} if firsts else metrics

    return measure


def best_span(start: Array, end: Array, allowed: NDArray[np.bool_]) -> tuple[int, int]:
    """(first, last) token of the span with the greatest sum of logits, [CLS] left out.

    >>> best_span(np.array([9.0, 1.0, 0.0]), np.array([9.0, 0.0, 2.0]), np.array([True, True, True]))
    (1, 2)

    Args:
        start, end, allowed: (t,).
    """
    places = np.flatnonzero(allowed)[1:]
    scores = start[places, None] + end[None, places]  # (c, c)
    length = np.arange(len(places))[None, :] - np.arange(len(places))[:, None]
    scores[(length < 0) | (length >= MAX_ANSWER_TOKENS)] = -np.inf
    first, last = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(places[first]), int(places[last])


def _overlaps(start: Array, end: Array, batch: dict[str, NDArray[np.generic]]) -> list[float]:
    found = []
    for row, (true_first, true_last) in enumerate(zip(batch["start"], batch["end"], strict=True)):
        if true_first > 0:
            first, last = best_span(start[row], end[row], batch["allowed"][row].astype(np.bool_))
            shared = max(0, min(last, int(true_last)) - max(first, int(true_first)) + 1)
            found.append(2 * shared / (last - first + 1 + int(true_last) - int(true_first) + 1))
    return found


def _firsts(relevance: Array, batch: dict[str, NDArray[np.generic]]) -> list[float]:
    found = []
    for group in np.unique(batch["group"]):
        rows = np.flatnonzero(batch["group"] == group)
        judged = batch["relevance"][rows]
        if len(rows) > 1 and (judged == 1).any():
            found.append(float(judged[int(relevance[rows].argmax())] == 1))
    return found
