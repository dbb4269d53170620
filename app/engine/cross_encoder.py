"""Any Hugging Face cross-encoder as reranker: one label or two, with its own activation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.combination import Combination
from app.engine.description import HeadDescription
from app.engine.head_files import HeadFiles
from app.engine.pair_runner import PairRunner
from app.engine.pairs import Question, TitledText
from app.engine.probability import sigmoid
from app.engine.reranker import Relevances
from app.errors import ModelUnavailable

MAX_WINDOWS = 4
"""Of a passage: what is read of a long one, so that one candidate costs at most so much."""
POSITIVE_LABELS = frozenset(
    {
        "1",
        "label_1",
        "relevant",
        "positive",
        "true",
        "yes",
        "entailment",
        "duplicate",
        "paraphrase",
        "similar",
    }
)
ALONE = Combination("linear", rerank=1.0, first_stage=0.0)
"""A cross-encoder that somebody chose decides alone, unless its calibration says otherwise."""


class CrossEncoder:
    """Implements `app.engine.reranker.Reranker`.

    A passage counts as its most relevant window.

    Raises:
        ModelUnavailable: neither one label nor two.
    """

    def __init__(self, files: HeadFiles, pairs: PairRunner) -> None:
        self._files = files
        self._pairs = pairs
        self._positive = positive_label(files)
        self._is_probability = gives_probability(files.config) or self._positive is not None
        self.combination = Combination.of(files.calibration, ALONE)
        self.max_text_tokens = None
        self.is_default = True

    @property
    def description(self) -> HeadDescription:
        return self._pairs.described(self._files)

    @property
    def fault(self) -> str | None:
        return self._pairs.fault

    @property
    def is_loaded(self) -> bool:
        return self._pairs.is_loaded

    def load(self) -> float:
        return self._pairs.load()

    def question(self, text: str) -> Question:
        return self._pairs.question(text)

    def rerank(
        self, question: str, passages: Sequence[TitledText], *, deadline: float | None = None
    ) -> Relevances:
        asked = self._pairs.question(question)
        found = self._pairs.run(asked, passages, max_windows=MAX_WINDOWS, deadline=deadline)
        logits = [
            np.nan if each is None else max(self._logit(outputs["logits"]) for outputs in each.windows)
            for each in found
        ]
        truncated = [each is not None and each.pair.is_truncated for each in found]
        return Relevances(asked, np.array(logits, dtype=np.float64), np.array(truncated, dtype=np.bool_))

    def probability(self, logit: float) -> float | None:
        return sigmoid(logit) if self._is_probability else None

    @property
    def activity(self) -> Activity:
        return self._pairs.activity

    def close(self) -> None:
        self._pairs.close()

    def _logit(self, logits: NDArray[np.float32]) -> float:
        """Of two labels the difference: its sigmoid is their softmax."""
        if self._positive is None:
            return float(logits[0])
        return float(logits[self._positive]) - float(logits[1 - self._positive])


def positive_label(files: HeadFiles) -> int | None:
    """Which of two labels means relevant: the second, unless only the first one's name says so. None: the
    model has one label.

    Raises:
        ModelUnavailable: neither one label nor two.
    """
    if len(files.labels) == 1:
        return None
    if len(files.labels) != 2:
        raise ModelUnavailable(
            f"{files.name} has {len(files.labels)} labels ({', '.join(files.labels)});"
            " a reranker has one or two"
        )
    first, second = (label.lower() in POSITIVE_LABELS for label in files.labels)
    return 0 if first and not second else 1


def gives_probability(config: Mapping[str, Any]) -> bool:
    """Whether its single logit is meant to go through a sigmoid, as sentence-transformers reads it: what the
    configuration names, and without a name a sigmoid."""
    named = (config.get("sentence_transformers") or {}).get("activation_fn")
    named = named or config.get("sbert_ce_default_activation_function")
    return named is None or str(named).rpartition(".")[2] == "Sigmoid"
