"""Bi-encoders: both texts through the same network, pooled, compared by cosine.

Pairs with scores are learnt by regression on the cosine (Reimers and Gurevych 2019, section 3); anchors
with positives against all other positives of the batch (Henderson et al. 2017, section 4.4) and mined hard
negatives.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.sampler import NoDuplicatesBatchSampler
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import mine_hard_negatives
from transformers import TrainerCallback

from app.engine.model_files import find_folder
from app.errors import InvalidInput
from indexer.training.bases import Base
from indexer.training.batching import TokenBatches, rounded
from indexer.training.examples.pairs import Positive, ScoredPair, scaled
from indexer.training.freezing import freeze
from indexer.training.pair_trainer import PairTrainer, new_pair_trainer
from indexer.training.prepared import Measure, Prepared
from indexer.training.request import Metrics, TrainingRequest
from indexer.training.text_pairs import (
    PairSplits,
    check_lengths,
    length_step,
    model_arguments,
    rank_correlation,
    read_splits,
    reciprocal_rank,
    scored_rows,
)
from indexer.training.trainer import WatchedTrainer

MINED_FROM = 10
"""Rank of the first text that may be a hard negative: those before it are often unmarked positives."""
MINED_TO = 50


class BiEncoderTrainer(PairTrainer, SentenceTransformerTrainer):
    pass


def prepare_bi_encoder(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `examples.pairs`; or a text is longer than the model takes and may not be cut.
        InvalidInput: nothing would learn.
    """
    if request.freeze == "encoder":
        raise InvalidInput(
            "--freeze encoder leaves nothing to learn: a bi-encoder has no head; try all-but-last-1"
        )
    splits = read_splits(request)
    model = SentenceTransformer(
        str(find_folder(base.name, offline=request.offline)), **model_arguments(request, base)
    )
    max_tokens = min(request.max_tokens or model.max_seq_length or base.max_tokens, base.max_tokens)
    model.max_seq_length = max_tokens
    transformer: Any = model[0]
    transformer.processing_kwargs = {"text": {"pad_to_multiple_of": length_step(max_tokens)}}
    freeze(transformer.auto_model, request.freeze)
    check = partial(
        check_lengths,
        tokenizer=model.tokenizer,
        max_tokens=max_tokens,
        truncate=request.truncate,
        is_joint=False,
    )
    lengths = check(splits.train)
    check(splits.validation)
    check(splits.test)
    return Prepared(
        module=model,
        encoder=transformer.auto_model,
        tokenizer=model.tokenizer,
        rows=_rows(splits, model, n_negatives=request.negatives),
        lengths=lengths,
        collate=None,
        measure_validation=_measure(splits.validation, splits.train),
        measure_test=_measure(splits.test, splits.train) if splits.test else None,
        metric="spearman" if splits.is_scored else "mrr@10",
        max_tokens=max_tokens,
        sizes=splits.sizes,
        notes=splits.notes,
        loss=(CosineSimilarityLoss if splits.is_scored else MultipleNegativesRankingLoss)(model),
    )


def new_bi_encoder_trainer(
    request: TrainingRequest, prepared: Prepared, callbacks: Sequence[TrainerCallback]
) -> WatchedTrainer:
    return new_pair_trainer(
        BiEncoderTrainer,
        SentenceTransformerTrainingArguments,
        request,
        prepared,
        callbacks,
        batches=_batches(prepared.rows, request=request, lengths=prepared.lengths),
    )


def _batches(dataset: Dataset, *, request: TrainingRequest, lengths: Sequence[int]) -> Any:
    """By length where rows are independent; without equal texts where each is a negative of the others."""
    if "label" in dataset.column_names:
        return TokenBatches(lengths, batch_tokens=request.batch_tokens, seed=request.seed)
    n_texts = len(dataset.column_names)
    longest = rounded(int(np.percentile(lengths, 95)))
    size = max(2, request.batch_tokens // (longest * n_texts))
    return NoDuplicatesBatchSampler(
        dataset, batch_size=min(size, len(dataset)), drop_last=False, seed=request.seed
    )


def _rows(splits: PairSplits, model: SentenceTransformer, *, n_negatives: int) -> Dataset:
    if splits.is_scored:
        return scored_rows(splits.train)
    positives = [pair for pair in splits.train if isinstance(pair, Positive)]
    given = min(len(pair.negatives) for pair in positives)
    rows = Dataset.from_dict(
        {
            "anchor": [pair.anchor for pair in positives],
            "positive": [pair.positive for pair in positives],
            **{f"negative_{i}": [pair.negatives[i] for pair in positives] for i in range(given)},
        }
    )
    return mined(rows, model, n=n_negatives) if n_negatives and not given else rows


def mined(rows: Dataset, model: SentenceTransformer, *, n: int) -> Dataset:
    """(anchor, positive, negative_1, ..., negative_n): texts that the model itself takes for near ones.

    Raises:
        InvalidInput: there are too few texts to choose from.
    """
    n_texts = len(set(rows["positive"]))
    first = min(MINED_FROM, max(0, n_texts // 4))
    if n_texts <= first + n:
        raise InvalidInput(f"--negatives {n}: there are only {n_texts} texts to choose from")
    return mine_hard_negatives(
        rows,
        model,
        range_min=first,
        range_max=min(MINED_TO, n_texts - 1),
        num_negatives=n,
        output_format="n-tuple",
        verbose=False,
    )


def _measure(pairs: Sequence[Any], trained_on: Sequence[Any]) -> Measure:
    """Rank correlation with the scores; or the rank of the anchor's own text among all of the split."""

    def measure(module: torch.nn.Module) -> Metrics:
        assert isinstance(module, SentenceTransformer)
        module.eval()
        if isinstance(pairs[0], ScoredPair):
            first = _vectors(module, [pair.first for pair in pairs])
            second = _vectors(module, [pair.second for pair in pairs])
            return {
                "spearman": rank_correlation((first * second).sum(axis=1), scaled(pairs, like=trained_on))
            }
        texts = list(dict.fromkeys(pair.positive for pair in pairs))
        numbers = {text: i for i, text in enumerate(texts)}
        relevant: dict[str, set[int]] = {}
        for pair in pairs:
            relevant.setdefault(pair.anchor, set()).add(numbers[pair.positive])
        anchors = list(relevant)
        scores = _vectors(module, anchors) @ _vectors(module, texts).T  # (anchors, texts)
        ranks = [reciprocal_rank(scores[i], relevant[anchor]) for i, anchor in enumerate(anchors)]
        return {"mrr@10": float(np.mean(ranks))}

    return measure


def _vectors(model: SentenceTransformer, texts: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False).astype(np.float32)
