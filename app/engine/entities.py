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
Follows = NDArray[np.bool_]
"""(k + 1, k), whether the second label may stand behind the first; row 0 is the beginning of the text."""
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
    follows: Follows | None = None,
) -> list[Word]:
    """Words of (t, k) probabilities; `words` (t,) has the number of each token's word, ascending.

    Args:
        follows: which label may stand behind which; None: any behind any, each word has its likeliest.
    """
    begins = np.flatnonzero(np.diff(words, prepend=-1) != 0)  # (n,)
    if not len(begins):
        return []
    afters = np.append(begins, len(words))[1:]
    spoken = np.array(
        [_spoken(scores[first:after], aggregation) for first, after in zip(begins, afters, strict=True)]
    )  # (n, k)
    chosen = spoken.argmax(axis=1) if follows is None else likeliest_path(spoken, follows)
    return [
        Word(labels[label], float(of_word[label]), int(starts[first]), int(ends[after - 1]))
        for label, of_word, first, after in zip(chosen.tolist(), spoken, begins, afters, strict=True)
    ]


def iob2_follows(labels: Sequence[str]) -> Follows:
    """In IOB2, I-X stands behind B-X or I-X alone (Tjong Kim Sang and Veenstra 1999)."""
    kinds = [OUTSIDE, *map(_kind, labels)]
    return np.array([[not b.startswith("I-") or kind == _kind(b) for b in labels] for kind in kinds])


def likeliest_path(scores: Scores, follows: Follows) -> NDArray[np.int64]:
    """Labels (n,) with the greatest product of probabilities (n, k) among those that may follow each other.

    Found by Viterbi's algorithm (Forney 1973), unless every word's likeliest label may stand where it is.
    """
    best: NDArray[np.int64] = scores.argmax(axis=1)
    if follows[np.concatenate([[0], best[:-1] + 1]), best].all():
        return best
    with np.errstate(divide="ignore"):
        costs = np.log(scores)  # (n, k)
        allowed = np.log(follows.astype(np.float64))  # (k + 1, k), 0 or -inf
    reached = costs[0] + allowed[0]
    before = np.zeros(scores.shape, dtype=np.int64)
    for place in range(1, len(scores)):
        ways = reached[:, np.newaxis] + allowed[1:]  # (k, k)
        before[place] = ways.argmax(axis=0)
        reached = ways.max(axis=0) + costs[place]
    path = [int(reached.argmax())]
    for place in range(len(scores) - 1, 0, -1):
        path.append(int(before[place, path[-1]]))
    return np.array(path[::-1])


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
