"""Models that read single texts, for tests: none, or tiny ones with random weights."""

from pathlib import Path
from typing import Any

from app.engine.model_files import find_bi_encoder
from app.engine.text_models import TextModels
from app.settings import Settings
from tests.engine.tiny_trained import write_tiny_lens, write_tiny_trained

TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


def without_texts(_: Settings) -> TextModels:
    return TextModels()


def tiny_text_settings(folder: Path) -> dict[str, Any]:
    """Settings whose models folder has a tagger, a classifier `sentiment` and a lens."""
    models, tokenizer_from = folder / "models", find_bi_encoder(Settings().embedder).transformer
    write_tiny_trained(
        models,
        "tagger",
        task="token",
        architecture="BertForTokenClassification",
        tokenizer_from=tokenizer_from,
        labels=TAGS,
    )
    write_tiny_trained(
        models,
        "sentiment",
        task="sequence",
        architecture="BertForSequenceClassification",
        tokenizer_from=tokenizer_from,
        labels=("negative", "positive"),
    )
    write_tiny_lens(models, tokenizer_from=tokenizer_from)
    return {"models": models, "runtime": "torch"}
