"""The reader role: where in each passage is the answer to a question, if it is there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.engine.activity import Activity
from app.engine.description import HeadDescription
from app.engine.pairs import Question, TitledText
from app.engine.spans import Span


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader finds in one passage."""

    spans: tuple[Span, ...]
    """Best first, none overlaps another; empty only for a passage without words."""
    relevance: float | None
    """Raw logit; None for a reader that does not judge it."""
    is_truncated: bool
    """Whether the end of the passage was not read."""


@dataclass(frozen=True, slots=True)
class Readings:
    question: Question
    passages: Sequence[Reading | None]
    """None where the deadline came first."""


class Reader(Protocol):
    """Safe to call from any thread."""

    @property
    def description(self) -> HeadDescription: ...

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

    def read(
        self,
        question: str,
        passages: Sequence[TitledText],
        *,
        n_spans: int = 1,
        max_windows: int | None = None,
        deadline: float | None = None,
    ) -> Readings:
        """At most `n_spans` spans of each passage, the first passages first, until `deadline`.

        Raises:
            BlankText: the question is.
            Overloaded: too many others use the model.
        """

    def answer_logit(self, span: Span, relevance: float | None) -> float:
        """Log-odds that the span answers the question: answers are ranked by it, whatever passage they are
        from. "No answer" counts only within the span's own passage."""

    @property
    def activity(self) -> Activity: ...

    def close(self) -> None: ...
