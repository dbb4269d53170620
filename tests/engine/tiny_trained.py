"""Small models with heads: weights out of a fixed seed, large enough for their logits to differ."""

import shutil
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import BertConfig

from app.engine.model_files import find_bi_encoder
from app.engine.torch_models import is_of_head, new_module
from app.engine.trained_models import Architecture, Task
from indexer.training.saving import save_trained_model
from tests.engine.tiny_model import DIMENSIONS, write_tiny_model

MAX_TOKENS = 96
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_tiny_joint_model(models: Path, *, tokenizer_from: Path, **options: Any) -> Path:
    """`models/reader-reranker` on a tiny base in `models/../tiny-base`; returns its folder."""
    return write_tiny_trained(
        models,
        "reader-reranker",
        task="reader-reranker",
        architecture="JointModel",
        tokenizer_from=tokenizer_from,
        **options,
    )


def write_tiny_lens(models: Path, *, tokenizer_from: Path) -> Path:
    """`models/lens` on the same base."""
    return write_tiny_trained(
        models, "lens", task="lens", architecture="BertForPreTraining", tokenizer_from=tokenizer_from
    )


def write_tiny_trained(
    models: Path,
    name: str,
    *,
    task: Task,
    architecture: Architecture,
    tokenizer_from: Path,
    labels: tuple[str, ...] = (),
    reads_capitals: bool = False,
    calibration: dict[str, Any] | None = None,
) -> Path:
    base_folder = models.parent / "tiny-base"
    if not base_folder.exists():
        write_tiny_model(base_folder, tokenizer_from=tokenizer_from, max_tokens=MAX_TOKENS)
    base = find_bi_encoder(str(base_folder))
    module = new_module(architecture, base, labels=labels).eval()
    enlarge(module)
    save_trained_model(
        module,
        models / name,
        task=task,
        architecture=architecture,
        base=base,
        max_tokens=MAX_TOKENS,
        labels=labels,
        reads_capitals=reads_capitals,
        calibration=calibration,
    )
    return models / name


def write_tiny_published(folder: Path, architecture: str, *, tokenizer_from: Path, **config: Any) -> Path:
    """A Hugging Face folder of a BERT with a head."""
    torch.manual_seed(2)
    settings = BertConfig(
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS,
        **config,
    )
    module = getattr(transformers, architecture)(settings).eval()
    enlarge(module)
    module.save_pretrained(folder)
    for name in TOKENIZER_FILES:
        shutil.copy(tokenizer_from / name, folder / name)
    return folder


def enlarge(module: torch.nn.Module) -> None:
    """Weights as large as a trained model's: initial ones are so small that all inputs look alike."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if is_of_head(name) or (name.endswith("weight") and parameter.dim() == 2):
                parameter.copy_(torch.randn_like(parameter) * (1.0 if is_of_head(name) else 0.2))
