"""A small bi-encoder with weights out of a fixed seed, in sentence-transformers layout."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel

DIMENSIONS = 32
MAX_TOKENS = 40


def write_tiny_model(
    folder: Path, *, tokenizer_from: Path, max_tokens: int = MAX_TOKENS, **sentence_transformers: Any
) -> Path:
    """Two layers, CLS pooling and, unless given otherwise in `config_sentence_transformers`, two prompts."""
    torch.manual_seed(1)
    config = BertConfig(
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=max_tokens + 8,
    )
    BertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(tokenizer_from / name, folder / name)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
    prompts = {"prompts": {"query": "question: ", "document": "answer: "}}
    write_json(folder / "config_sentence_transformers.json", prompts | sentence_transformers)
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write_json(
        folder / "modules.json",
        [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(modules)
        ],
    )
    pooling = {"word_embedding_dimension": DIMENSIONS, "pooling_mode_cls_token": True}
    write_json(folder / "1_Pooling" / "config.json", pooling | {"pooling_mode_mean_tokens": False})
    return folder


def write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
