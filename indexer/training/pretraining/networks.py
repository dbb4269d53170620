"""Networks to pretrain, and their loss.

The words' scores are computed at the masked places only: over 30,000 words they would cost more than the
encoder itself.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AutoModelForMaskedLM,
    BertConfig,
    BertForPreTraining,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from app.errors import InvalidInput
from indexer.training.bases import Base, loading
from indexer.training.pretraining.masking import PAIR_LABELS
from indexer.training.request import Family, PretrainingRequest

IGNORED = -100


@dataclass(frozen=True, slots=True)
class Parts:
    encoder: Any
    words: Any
    """Scores words for hidden states."""
    pair: Any
    """Scores TOGETHER and APART for a pooled state."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Of a batch; sums can be formed with the counts."""

    mlm: torch.Tensor
    pair: torch.Tensor | None
    n_masked: int
    n_words_right: int
    n_pairs_right: int

    @property
    def total(self) -> torch.Tensor:
        return self.mlm if self.pair is None else self.mlm + self.pair


def new_network(
    request: PretrainingRequest, base: Base, tokenizer: PreTrainedTokenizerBase
) -> PreTrainedModel:
    """The base to go on from, or a new one.

    Raises:
        InvalidInput: an architecture that has no head for pairs.
    """
    if request.config is not None:
        return from_scratch(
            request.config,
            vocabulary=len(tokenizer),
            layers=request.layers,
            heads=request.heads,
            dimensions=request.dimensions,
            embedding_dimensions=request.embedding_dimensions,
            positions=max(request.max_tokens, 128),
            dropout=request.dropout,
            pad_id=tokenizer.pad_token_id,
        )
    options = loading(base, dropout=request.dropout)
    kinds: dict[str, Any] = {"bert": BertForPreTraining, "albert": AlbertForPreTraining}
    kind = kinds.get(base.architecture)
    if kind is None and request.objective != "mlm":
        raise InvalidInput(
            f"a {base.architecture} has no head for pairs of segments; the objective mlm works with it, "
            f"{request.objective} with {' and '.join(kinds)}"
        )
    network: PreTrainedModel = (kind or AutoModelForMaskedLM).from_pretrained(base.folder, **options)
    return network


def from_scratch(
    family: Family,
    *,
    vocabulary: int,
    layers: int,
    heads: int,
    dimensions: int,
    embedding_dimensions: int,
    positions: int = 512,
    dropout: float = 0.1,
    pad_id: int | None = 0,
) -> PreTrainedModel:
    """
    Raises:
        InvalidInput: the heads do not divide the dimensions.
    """
    if dimensions % heads:
        raise InvalidInput(f"{dimensions} dimensions cannot be divided among {heads} heads")
    options: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": dimensions,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * dimensions,
        "max_position_embeddings": positions,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": pad_id,
    }
    if family == "albert":
        return AlbertForPreTraining(AlbertConfig(**options, embedding_size=embedding_dimensions))
    return BertForPreTraining(BertConfig(**options))


def parts(network: Any) -> Parts | None:
    """None for architectures that are run as a whole."""
    if isinstance(network, BertForPreTraining):
        return Parts(network.bert, network.cls.predictions, network.cls.seq_relationship)
    if isinstance(network, AlbertForPreTraining):
        return Parts(network.albert, network.predictions, network.sop_classifier)
    return None


def losses(network: Any, batch: dict[str, torch.Tensor], *, with_pairs: bool) -> Losses:
    """
    Args:
        batch: of `MaskingCollator`, on the network's device.
    """
    labels, pair_labels = batch["labels"], batch[PAIR_LABELS]
    inputs = {name: value for name, value in batch.items() if name not in ("labels", PAIR_LABELS)}
    masked = labels != IGNORED  # (n, t)
    expected = labels[masked]  # (m,)
    known = parts(network)
    pair_scores = None
    if known is None:
        scores = network(**inputs).logits[masked]  # (m, vocabulary)
    else:
        outputs = known.encoder(**inputs)
        scores = known.words(outputs.last_hidden_state[masked])  # (m, vocabulary)
        pair_scores = known.pair(outputs.pooler_output) if with_pairs else None  # (n, 2)
    entropy = torch.nn.functional.cross_entropy
    mlm = entropy(scores.float(), expected) if len(expected) else scores.float().sum()
    return Losses(
        mlm=mlm,
        pair=None if pair_scores is None else entropy(pair_scores.float(), pair_labels),
        n_masked=len(expected),
        n_words_right=int((scores.argmax(dim=-1) == expected).sum()),
        n_pairs_right=0 if pair_scores is None else int((pair_scores.argmax(dim=-1) == pair_labels).sum()),
    )
