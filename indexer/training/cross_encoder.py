"""Cross-encoders: both texts through BERT together, `[CLS] a [SEP] b [SEP]`, and one number from [CLS].

Graded or binary scores are learnt with binary cross-entropy; anchors with positives against negatives that
were given or mined. Source: Nogueira and Cho 2019, section 3.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
from sentence_transformers.cross_encoder.training_args import CrossEncoderTrainingArguments
from transformers import TrainerCallback

from app.engine.model_files import find_folder
from app.errors import InvalidInput
from indexer.training.bases import Base
from indexer.training.batching import TokenBatches
from indexer.training.bi_encoder import mined
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

DEFAULT_NEGATIVES = 4
N_CANDIDATES = 20
"""Texts that a measured anchor's own are ranked among."""


class ReadTogetherTrainer(PairTrainer, CrossEncoderTrainer):
    pass


def prepare_cross_encoder(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `examples.pairs`; or a pair is longer than the model takes and may not be cut.
    """
    splits = read_splits(request)
    max_tokens = min(request.max_tokens or base.max_tokens, base.max_tokens)
    model = CrossEncoder(
        str(base.folder), num_labels=1, max_length=max_tokens, **model_arguments(request, base)
    )
    transformer: Any = model[0]
    transformer.processing_kwargs = {"text": {"pad_to_multiple_of": length_step(max_tokens)}}
    encoder = transformer.auto_model.base_model
    freeze(encoder, request.freeze)
    check = partial(
        check_lengths,
        tokenizer=model.tokenizer,
        max_tokens=max_tokens,
        truncate=request.truncate,
        is_joint=True,
    )
    check(splits.train)
    check(splits.validation)
    check(splits.test)
    rows = _rows(splits, base, request)
    lengths = [
        min(len(ids), max_tokens)
        for ids in model.tokenizer(list(rows["sentence1"]), list(rows["sentence2"]))["input_ids"]
    ]
    measure = partial(_measure, trained_on=splits.train, seed=request.seed)
    return Prepared(
        module=model,
        encoder=encoder,
        tokenizer=model.tokenizer,
        rows=rows,
        lengths=lengths,
        collate=None,
        measure_validation=measure(splits.validation),
        measure_test=measure(splits.test) if splits.test else None,
        metric="spearman" if splits.is_scored else "mrr@10",
        max_tokens=max_tokens,
        sizes=splits.sizes,
        notes=splits.notes,
        loss=BinaryCrossEntropyLoss(model),
    )


def new_cross_encoder_trainer(
    request: TrainingRequest, prepared: Prepared, callbacks: Sequence[TrainerCallback]
) -> WatchedTrainer:
    return new_pair_trainer(
        ReadTogetherTrainer,
        CrossEncoderTrainingArguments,
        request,
        prepared,
        callbacks,
        batches=TokenBatches(prepared.lengths, batch_tokens=request.batch_tokens, seed=request.seed),
    )


def _rows(splits: PairSplits, base: Base, request: TrainingRequest) -> Dataset:
    if splits.is_scored:
        return scored_rows(splits.train)
    positives = [pair for pair in splits.train if isinstance(pair, Positive)]
    triples = [(p.anchor, p.positive, 1.0) for p in positives]
    if all(p.negatives for p in positives):
        triples += [(p.anchor, negative, 0.0) for p in positives for negative in p.negatives]
    else:
        triples += _mined(positives, base, request)
    first, second, label = zip(*triples, strict=True)
    return Dataset.from_dict({"sentence1": first, "sentence2": second, "label": label})


def _mined(
    positives: Sequence[Positive], base: Base, request: TrainingRequest
) -> list[tuple[str, str, float]]:
    """Mined by the base itself as a bi-encoder."""
    n = request.negatives or DEFAULT_NEGATIVES
    retriever = SentenceTransformer(
        str(find_folder(base.name, offline=request.offline)),
        device="cpu",
        local_files_only=True,
        trust_remote_code=False,
    )
    rows = Dataset.from_dict(
        {"anchor": [p.anchor for p in positives], "positive": [p.positive for p in positives]}
    )
    found = mined(rows, retriever, n=n)
    return [(row["anchor"], row[f"negative_{i + 1}"], 0.0) for row in found for i in range(n)]


def _measure(pairs: Sequence[Any], *, trained_on: Sequence[Any], seed: int) -> Measure:
    """Rank correlation with the scores; or the rank of the anchor's own text among others of the split."""
    if isinstance(pairs[0], ScoredPair):
        asked = [(pair.first, pair.second) for pair in pairs]
        expected = scaled(pairs, like=trained_on)

        def measure(module: torch.nn.Module) -> Metrics:
            return {"spearman": rank_correlation(_scores(module, asked), expected)}

        return measure
    random = np.random.default_rng(seed)
    texts = list(dict.fromkeys(pair.positive for pair in pairs))
    if len(texts) < 2:
        raise InvalidInput("validation or test has one text alone; nothing can be ranked")
    lists = []
    for pair in pairs:
        others = [text for text in texts if text != pair.positive]
        chosen = random.choice(len(others), size=min(N_CANDIDATES - 1, len(others)), replace=False)
        lists.append([*((pair.anchor, others[i]) for i in chosen), (pair.anchor, pair.positive)])

    def measure_ranks(module: torch.nn.Module) -> Metrics:
        scores = iter(_scores(module, [asked for of_anchor in lists for asked in of_anchor]).tolist())
        ranks = [
            # The own text comes last, so that a model that scores all alike gains nothing.
            reciprocal_rank([next(scores) for _ in of_anchor], {len(of_anchor) - 1})
            for of_anchor in lists
        ]
        return {"mrr@10": float(np.mean(ranks))}

    return measure_ranks


def _scores(
    module: torch.nn.Module, asked: Sequence[tuple[str, str]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Raw logits, so that none are equal because a sigmoid is full."""
    assert isinstance(module, CrossEncoder)
    module.eval()
    scores = module.predict(
        list(asked), activation_fn=torch.nn.Identity(), show_progress_bar=False, convert_to_numpy=True
    )
    return np.asarray(scores, dtype=np.float64).reshape(-1)
