"""Readers: any Hugging Face model for extractive question answering, and the joint model, which in the same
pass judges relevance and so is a reranker, too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from app.engine.activity import Activity
from app.engine.combination import Combination
from app.engine.cross_encoder import MAX_WINDOWS
from app.engine.description import HeadDescription
from app.engine.head_files import HeadFiles
from app.engine.pair_runner import PairOutputs, PairRunner
from app.engine.pairs import Question, TitledText
from app.engine.probability import sigmoid
from app.engine.reader import Reading, Readings
from app.engine.reranker import Relevances
from app.engine.spans import Span, best_spans

RELEVANCE = "relevance"
"""Name of the output that a joint model has more than a reader."""
WITH_FIRST_STAGE = Combination("linear", rerank=1.0, first_stage=10.0)
"""Of a joint model without a fitted combination."""


@dataclass(frozen=True, slots=True)
class AnswerCalibration:
    """Log-odds of an answer: span * margin + relevance * logit + bias. A logistic regression (Platt 1999),
    fitted on questions that took no part in training."""

    span: float = 1.0
    relevance: float = 0.5
    bias: float = 0.0
    """The defaults are a guess, for models without calibration."""

    @classmethod
    def of(cls, calibration: Mapping[str, Any]) -> Self:
        return cls(**calibration.get("answer", {}))

    def logit(self, margin: float, relevance: float | None) -> float:
        return self.span * margin + self.relevance * (relevance or 0.0) + self.bias


class SpanReader:
    """Implements `app.engine.reader.Reader`."""

    def __init__(self, files: HeadFiles, pairs: PairRunner) -> None:
        self._files = files
        self._pairs = pairs
        self._calibration = AnswerCalibration.of(files.calibration)

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

    def read(
        self,
        question: str,
        passages: Sequence[TitledText],
        *,
        n_spans: int = 1,
        max_windows: int | None = None,
        deadline: float | None = None,
    ) -> Readings:
        asked = self._pairs.question(question)
        found = self._pairs.run(asked, passages, max_windows=max_windows, deadline=deadline)
        readings = [
            None
            if each is None
            else Reading(
                spans=best_spans(passage.text, each.pair, each.windows, n_spans=n_spans),
                relevance=relevance_of(each),
                is_truncated=each.pair.is_truncated,
            )
            for passage, each in zip(passages, found, strict=True)
        ]
        return Readings(asked, readings)

    def answer_logit(self, span: Span, relevance: float | None) -> float:
        return self._calibration.logit(span.margin, relevance)

    @property
    def activity(self) -> Activity:
        return self._pairs.activity

    def close(self) -> None:
        self._pairs.close()


class JointReader(SpanReader):
    """Implements `app.engine.reranker.Reranker` as well: a reading has the relevance with it."""

    def __init__(self, files: HeadFiles, pairs: PairRunner) -> None:
        super().__init__(files, pairs)
        self.combination = Combination.of(files.calibration, WITH_FIRST_STAGE)
        self.is_default = bool(files.calibration.get("rerank_by_default", True))
        self.max_text_tokens: int | None = files.calibration.get("rerank_tokens")
        """Of a passage, that ranking reads: the beginning tells as much, and in less time."""

    def rerank(
        self, question: str, passages: Sequence[TitledText], *, deadline: float | None = None
    ) -> Relevances:
        asked = self._pairs.question(question)
        found = self._pairs.run(
            asked,
            passages,
            max_windows=1 if self.max_text_tokens else MAX_WINDOWS,
            deadline=deadline,
            max_text_tokens=self.max_text_tokens,
        )
        logits = [np.nan if each is None else relevance_of(each) for each in found]
        truncated = [each is not None and each.pair.is_truncated for each in found]
        return Relevances(asked, np.array(logits, dtype=np.float64), np.array(truncated, dtype=np.bool_))

    def probability(self, logit: float) -> float | None:
        return sigmoid(logit)


def relevance_of(outputs: PairOutputs) -> float | None:
    """Of the most relevant window; None for a network that does not judge it."""
    logits = [float(window[RELEVANCE]) for window in outputs.windows if RELEVANCE in window]
    return max(logits, default=None)
