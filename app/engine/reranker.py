"""The reranker role: how relevant is each passage to a question, both read together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.combination import Combination
from app.engine.description import HeadDescription
from app.engine.pairs import Question, TitledText


@dataclass(frozen=True, slots=True)
class Relevances:
    question: Question
    logits: NDArray[np.float64]  # (n,), raw; greater is more relevant; NaN where the deadline came first
    truncated: NDArray[np.bool_]  # (n,), whether the end of the passage was not read


class Reranker(Protocol):
    """Safe to call from any thread."""

    @property
    def description(self) -> HeadDescription: ...

    @property
    def max_text_tokens(self) -> int | None:
        """Of a passage, that it reads; None: all of it."""

    @property
    def is_default(self) -> bool:
        """Whether searches that do not say are reranked. A model that was not measured to be better than the
        first stage on every kind of query says no."""

    @property
    def combination(self) -> Combination:
        """How its logit and the first stage's score make one ranking."""

    @property
    def fault(self) -> str | None:
        """As `Embedder.fault`."""

    @property
    def is_loaded(self) -> bool:
        """Whether it is in memory; its description is known before."""

    def load(self) -> float:
        """As `Runner.load`: a call loads the model, too, but does not say how much of its time that took."""

    def question(self, text: str) -> Question:
        """What of a question it would read. Raises BlankText."""

    def rerank(
        self, question: str, passages: Sequence[TitledText], *, deadline: float | None = None
    ) -> Relevances:
        """Relevance of each passage, the first ones first, until `deadline` of `time.monotonic`.

        Raises:
            BlankText: the question is.
            Overloaded: too many others use the model.
        """

    def probability(self, logit: float) -> float | None:
        """For display: 0..1; None where the model's scores are no probabilities."""

    @property
    def activity(self) -> Activity: ...

    def close(self) -> None: ...
