"""What answering a question gives."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain import Answer, PassageHit


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """An answer and where it is from: a passage of a document, or one of the contexts that were given."""

    answer: Answer
    passage: PassageHit
    document_id: str | None
    """None for a given context."""
    title: str | None
    context: int | None
    """0-based place among the given contexts; None for a document."""
    n_occurrences: int
    """Passages that gave the same answer; this is the best of them."""


@dataclass(frozen=True, slots=True)
class AnswerResult:
    answers: tuple[FoundAnswer, ...]
    """Best first, no answer twice."""
    answerable_probability: float
    """0..1, that the best answer is one, calibrated where the model is."""
    n_question_tokens: int
    """Special tokens not included."""
    max_question_tokens: int
    """More are cut off."""
    n_candidates: int
    """Passages that were to be read."""
    n_read: int
    """Fewer where the budget was used up."""
    unread_contexts: tuple[int, ...]
    """Given contexts that are blank."""
    timings_ms: Mapping[str, float]
    """Milliseconds per stage: encode, filter (if any), retrieve, fetch, load (if a model was not
    yet), read, total."""
