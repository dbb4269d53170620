"""Small BERTs with heads and weights out of a fixed seed, as transformers saves them."""

import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, PreTrainedModel

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_tiny_head(
    folder: Path,
    kind: type[PreTrainedModel],
    *,
    tokenizer_from: Path,
    labels: tuple[str, ...] = (),
    **config: Any,
) -> Path:
    """Two layers, four heads, 32 dimensions; weights large enough that its answers differ between inputs."""
    torch.manual_seed(2)
    if labels:
        config |= {
            "id2label": dict(enumerate(labels)),
            "label2id": {each: i for i, each in enumerate(labels)},
        }
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    kind(BertConfig(**{**sizes, **config})).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        shutil.copy(tokenizer_from / name, folder / name)
    return folder
