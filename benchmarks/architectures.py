"""What ALBERT saves against BERT of the same width: parameters, and the time of a training step.

    python benchmarks/architectures.py

Both are built with random weights and take steps of masked-word pretraining in turns. Times are of the
process (CPU) on one thread, which a busy machine changes least. The savings: Lan et al. 2020, section 3.1.
Writes benchmarks/results/architectures.json.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from benchmarks.environment import write_result
from indexer.training.optimiser import uses_bf16
from indexer.training.pretraining.masking import PAIR_LABELS
from indexer.training.pretraining.networks import from_scratch, losses

VOCABULARY = 30_522
WIDTHS = ((384, 6, 12), (384, 12, 12), (768, 12, 12))
"""(dimensions, layers, heads)."""
EMBEDDING_DIMENSIONS = 128
ROWS, TOKENS, MASKED = 8, 128, 19
"""Of a step; 15 % of the tokens are masked."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=12, help="of each network; the first two do not count")
    given = parser.parse_args()
    torch.set_num_threads(1)
    compared = [compare(*width, n_steps=given.steps) for width in WIDTHS]
    figures = {
        "what": f"masked-word steps of {ROWS} x {TOKENS} tokens in turns, random weights",
        "embedding_dimensions": EMBEDDING_DIMENSIONS,
        "vocabulary": VOCABULARY,
        "bf16": uses_bf16("auto"),
        "compared": compared,
    }
    print(write_result("architectures", figures))


def compare(dimensions: int, layers: int, heads: int, *, n_steps: int) -> dict[str, Any]:
    networks = {
        family: from_scratch(
            family,
            vocabulary=VOCABULARY,
            layers=layers,
            heads=heads,
            dimensions=dimensions,
            embedding_dimensions=EMBEDDING_DIMENSIONS,
        ).train()
        for family in ("bert", "albert")
    }
    seconds: dict[str, list[float]] = {family: [] for family in networks}
    optimisers = {family: torch.optim.AdamW(n.parameters(), fused=True) for family, n in networks.items()}
    batch = made_batch()
    for _ in range(n_steps):
        for family, network in networks.items():
            began = time.process_time()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=uses_bf16("auto")):
                loss = losses(network, batch, with_pairs=True).total
            loss.backward()
            optimisers[family].step()
            optimisers[family].zero_grad()
            seconds[family].append(time.process_time() - began)
    result: dict[str, Any] = {"dimensions": dimensions, "layers": layers}
    for family, network in networks.items():
        encoder = network.base_model
        result[family] = {
            "parameters": sum(p.numel() for p in network.parameters()),
            "of_embeddings": sum(p.numel() for p in encoder.embeddings.parameters()),
            "of_layers": sum(p.numel() for p in encoder.encoder.parameters()),
            "step_cpu_ms": round(statistics.median(seconds[family][2:]) * 1000, 1),
        }
        print(family, dimensions, layers, result[family], flush=True)
    return result


def made_batch() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, VOCABULARY, (ROWS, TOKENS), generator=random)
    labels = torch.full_like(ids, -100)
    labels[:, :MASKED] = ids[:, :MASKED]
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "labels": labels,
        PAIR_LABELS: torch.randint(0, 2, (ROWS,), generator=random),
    }


if __name__ == "__main__":
    main()
