"""Scores of tokens to entities: first to words, so that no entity begins or ends within one, then grouped."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.labels import Entity

Aggregation = Literal["word", "first", "average", "max"]
"""Which token speaks for its word: the first, all by their mean, or the surest. `word`: the first one of the
whole word, as `app.engine.whole_words` has it."""
Scores = NDArray[np.float64]
OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class Word:
    label: str
    score: float
    start: int
    end: int


def tagged_words(
    scores: Scores,
    words: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    *,
    labels: Sequence[str],
    aggregation: Aggregation,
) -> list[Word]:
    """Words of (t, k) probabilities; `words` (t,) has the number of each token's word, ascending."""
    begins = np.flatnonzero(np.diff(words, prepend=-1) != 0)
    spoken = []
    for first, after in zip(begins, np.append(begins, len(words))[1:], strict=True):
        of_word = _spoken(scores[first:after], aggregation)  # (k,)
        best = int(of_word.argmax())
        spoken.append(Word(labels[best], float(of_word[best]), int(starts[first]), int(ends[after - 1])))
    return spoken


def entities(text: str, words: Sequence[Word]) -> list[Entity]:
    """Neighbouring words of one kind are one entity, unless a label begins with B-; the score is their mean.

    Labels without B- and I- go on as I- does.
    """
    return [
        Entity(
            entity_group=_kind(group[0].label),
            score=float(np.mean([word.score for word in group])),
            word=text[group[0].start : group[-1].end],
            start=group[0].start,
            end=group[-1].end,
        )
        for group in _groups(words)
        if _kind(group[0].label) != OUTSIDE
    ]


def _spoken(scores: Scores, aggregation: Aggregation) -> Scores:
    """(k,) of the (t, k) of one word."""
    if aggregation in {"word", "first"}:
        chosen: Scores = scores[0]
    elif aggregation == "average":
        chosen = scores.mean(axis=0)
    else:
        chosen = scores[scores.max(axis=1).argmax()]
    return chosen


def _groups(words: Sequence[Word]) -> Iterator[list[Word]]:
    group: list[Word] = []
    for word in words:
        if group and (word.label.startswith("B-") or _kind(word.label) != _kind(group[-1].label)):
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label
