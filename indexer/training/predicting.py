"""Outputs of a module for many rows, batch by batch, without gradients."""

from collections.abc import Iterator, Sequence

import torch

from indexer.training.batching import RoundingCollator, TokenBatches
from indexer.training.prepared import Row

BATCH_TOKENS = 4096


def predict(
    module: torch.nn.Module, rows: Sequence[Row], collate: RoundingCollator
) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
    """(row numbers, outputs and, if there are any, `labels`), in ascending length. Sets evaluation mode."""
    module.eval()
    device = next(module.parameters()).device
    lengths = [len(row["input_ids"]) for row in rows]
    for numbers in TokenBatches(lengths, batch_tokens=BATCH_TOKENS, seed=None):
        batch = collate([rows[i] for i in numbers]).to(device)
        with torch.inference_mode():
            outputs = module(**batch)
        labels = {"labels": batch["labels"]} if "labels" in batch else {}
        yield numbers, {**dict(outputs), **labels}
