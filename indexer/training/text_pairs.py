"""What training on pairs of texts shares: its files, its rows, and the trainer's batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from app.errors import InvalidInput
from indexer.evaluation.lines import refuse
from indexer.training.bases import Base, loading
from indexer.training.examples.pairs import Pairs, Positive, ScoredPair, read_judged_pairs, read_pairs, scaled
from indexer.training.request import TrainingRequest
from indexer.training.splits import find_splits

SUFFIXES = (".tsv", ".jsonl")
HELD_OUT_EVERY = 10
LENGTH_STEP = 32


@dataclass(frozen=True, slots=True)
class PairSplits:
    train: Pairs
    validation: Pairs
    test: Pairs
    notes: tuple[str, ...] = ()

    @property
    def is_scored(self) -> bool:
        return isinstance(self.train[0], ScoredPair)

    @property
    def sizes(self) -> dict[str, int]:
        return {"train": len(self.train), "validation": len(self.validation), "test": len(self.test)}


def read_splits(request: TrainingRequest) -> PairSplits:
    """
    Raises:
        BadFile: see `examples.pairs`.
        InvalidInput: splits of different kinds.
    """
    notes: tuple[str, ...] = ()
    if len(request.paths) == 1 and (request.paths[0] / "qrels").is_dir():
        folder = request.paths[0]
        train: Pairs = read_judged_pairs(folder, "train")
        validation: Pairs = read_judged_pairs(folder, "dev") if (folder / "qrels/dev.tsv").is_file() else []
        test: Pairs = read_judged_pairs(folder, "test") if (folder / "qrels/test.tsv").is_file() else []
    else:
        splits = find_splits(request, suffixes=SUFFIXES)
        train = [pair for path in splits.train for pair in read_pairs(path)]  # type: ignore[assignment]
        validation = read_pairs(splits.validation) if splits.validation else []
        test = read_pairs(splits.test) if splits.test else []
    if not validation:
        validation = train[::HELD_OUT_EVERY]
        train = [pair for i, pair in enumerate(train) if i % HELD_OUT_EVERY]  # type: ignore[assignment]
        notes = (f"{len(validation)} of the training pairs were held out for validation",)
    if not train:
        raise InvalidInput("one pair alone is too little; two or more are needed")
    if len({type(pair) for pair in (*train, *validation, *test)}) > 1:
        raise InvalidInput(
            "the splits are of different kinds: some have scores, others anchors and positives"
        )
    return PairSplits(train, validation, test, notes)


def check_lengths(
    pairs: Pairs,
    *,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    truncate: bool,
    is_joint: bool,
) -> list[int]:
    """(n,): tokens of the longest text of each pair, or of both together where the model reads them so.

    Raises:
        BadFile: a pair is longer than the model takes, and may not be cut.
    """
    lengths = []
    for pair in pairs:
        texts = texts_of(pair)
        counts = [len(ids) for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]]
        n_special = tokenizer.num_special_tokens_to_add(pair=is_joint)
        length = (counts[0] + max(counts[1:]) if is_joint else max(counts)) + n_special
        if length > max_tokens and not truncate:
            refuse(
                pair.path,
                pair.line,
                f"has {length} tokens, the model takes {max_tokens}; cut it or allow --truncate",
            )
        lengths.append(min(length, max_tokens))
    return lengths


def length_step(max_tokens: int) -> int:
    """What lengths are multiples of: sentence-transformers pads for itself, and knows no other rounding.

    >>> length_step(256), length_step(48)
    (32, 16)
    """
    return math.gcd(LENGTH_STEP, max_tokens)


def texts_of(pair: ScoredPair | Positive) -> tuple[str, ...]:
    if isinstance(pair, ScoredPair):
        return (pair.first, pair.second)
    return (pair.anchor, pair.positive, *pair.negatives)


def model_arguments(request: TrainingRequest, base: Base) -> dict[str, Any]:
    """Of SentenceTransformer and CrossEncoder: nothing from a hub, safetensors, dropout as asked for."""
    options = loading(base, dropout=request.dropout)
    dtype, safetensors = options.pop("dtype"), options.pop("use_safetensors")
    for name in ("local_files_only", "trust_remote_code"):
        options.pop(name)
    return {
        "device": "cpu",
        "local_files_only": True,
        "trust_remote_code": False,
        "model_kwargs": {"dtype": dtype, "use_safetensors": safetensors},
        "config_kwargs": options,
    }


def reciprocal_rank(
    scores: Sequence[float] | np.ndarray[Any, Any], relevant: set[int], *, depth: int = 10
) -> float:
    """1 / rank of the best relevant one among the first `depth`, else 0; ties go to the lower number.

    >>> reciprocal_rank([0.1, 0.9, 0.5], {2})
    0.5
    """
    order = np.argsort(-np.asarray(scores), kind="stable")[:depth]
    return next((1.0 / rank for rank, i in enumerate(order.tolist(), start=1) if i in relevant), 0.0)


def rank_correlation(scores: Any, expected: Sequence[float]) -> float:
    """Spearman's rho; 0 where either is constant, so that a model that says always the same has none.

    >>> round(rank_correlation([0.1, 0.3, 0.2], [1.0, 3.0, 2.0]), 4)
    1.0
    """
    if len(set(np.asarray(scores).tolist())) < 2 or len(set(expected)) < 2:
        return 0.0
    return float(scipy.stats.spearmanr(scores, expected).statistic)


def scored_rows(pairs: Sequence[Any]) -> Dataset:
    """Of the pairs with a score, which is brought to 0..1."""
    scored = [pair for pair in pairs if isinstance(pair, ScoredPair)]
    return Dataset.from_dict(
        {
            "sentence1": [pair.first for pair in scored],
            "sentence2": [pair.second for pair in scored],
            "label": scaled(scored, like=scored),
        }
    )
