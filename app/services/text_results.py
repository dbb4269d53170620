"""Batches of texts: blank ones are answered with an error of their own, the others as they would be alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from app.engine.inputs import is_blank
from app.engine.linear_head import Logits
from app.errors import TextTooLong
from app.labels import Classification, LabelScore

R = TypeVar("R")

BLANK = "the text is blank: it needs at least one visible character"
DECIMALS = 6


def visible_places(texts: Sequence[str]) -> list[int]:
    """Of the texts that are not blank."""
    return [i for i, text in enumerate(texts) if not is_blank(text)]


def read_at(places: Sequence[int], texts: Sequence[str], read: Callable[[Sequence[str]], R]) -> R:
    """Read the texts at those places.

    Raises:
        TextTooLong: naming the place among all texts.
    """
    try:
        return read([texts[i] for i in places])
    except TextTooLong as error:
        place = places[int(error.where[1])]
        raise TextTooLong(
            f"text {place} has {error.n_tokens} tokens, the model takes {error.max_tokens}; shorten it or "
            "allow truncation",
            n_tokens=error.n_tokens,
            max_tokens=error.max_tokens,
            where=("texts", place),
        ) from error


@dataclass(frozen=True, slots=True)
class Scope:
    """Of a classifier that knows one."""

    scores: Logits  # (n,)
    threshold: float


@dataclass(frozen=True, slots=True)
class Scored:
    """n texts that were read, scored by k labels."""

    labels: Sequence[str]
    logits: Logits  # (n, k)
    scores: Logits  # (n, k)
    n_tokens: NDArray[np.int32]  # (n,)
    truncated: NDArray[np.bool_]  # (n,)
    scope: Scope | None = None

    def results(self, places: Sequence[int], *, n_texts: int, top_k: int) -> tuple[Classification, ...]:
        """By text: those at `places` with their labels, the others with an error."""
        results = [Classification((), n_tokens=0, truncated=False, error=BLANK)] * n_texts
        for row, place in enumerate(places):
            results[place] = self._result(row, top_k=top_k)
        return tuple(results)

    def _result(self, row: int, *, top_k: int) -> Classification:
        result = Classification(
            ranked_labels(self.labels, self.logits[row], self.scores[row], top_k=top_k),
            n_tokens=int(self.n_tokens[row]),
            truncated=bool(self.truncated[row]),
        )
        if self.scope is None:
            return result
        score = float(self.scope.scores[row])
        return replace(result, scope_score=_rounded(score), out_of_scope=score < self.scope.threshold)


def ranked_labels(
    labels: Sequence[str], logits: NDArray[np.float64], scores: NDArray[np.float64], *, top_k: int
) -> tuple[LabelScore, ...]:
    """Of (k,) logits and scores: the best by logit, which saturates nowhere; equal ones by label."""
    order = sorted(range(len(labels)), key=lambda i: (-logits[i], labels[i]))[:top_k]
    return tuple(LabelScore(labels[i], _rounded(scores[i]), _rounded(logits[i])) for i in order)


def _rounded(number: float | np.float64) -> float:
    return round(float(number), DECIMALS)
