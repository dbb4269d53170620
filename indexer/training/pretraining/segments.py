"""Inputs made of documents: two segments that belong together or not, or one.

- Next sentence prediction: the second segment follows the first, or, half of the time, comes from another
  document (Devlin et al. 2019, section 3.1).
- Sentence order prediction: the second segment follows the first, or, half of the time, both are swapped,
  so that the topic tells nothing (Lan et al. 2020, section 3.1).

No segment reaches over the end of its document.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.errors import InvalidInput
from indexer.training.request import Objective

Sentence = list[int]
"""Token ids."""
TOGETHER, APART = 0, 1
"""Labels, as transformers has them: 0 says that the second segment follows the first."""
MIN_TOKENS = 8
"""Of an input; what is left of a document after its last full one is dropped below this."""


@dataclass(frozen=True, slots=True)
class Segments:
    first: list[int]
    second: list[int]
    """Empty where the objective knows one segment."""
    label: int
    """TOGETHER or APART; TOGETHER for a single segment."""


def segments(
    documents: Sequence[Sequence[Sentence]],
    *,
    objective: Objective,
    max_tokens: int,
    random: np.random.Generator,
) -> list[Segments]:
    """
    Args:
        max_tokens: of both segments, without special tokens.

    Raises:
        InvalidInput: random second segments from a single document.
    """
    if objective == "mlm+nsp" and len(documents) < 2:
        raise InvalidInput(
            "next sentence prediction needs two documents or more, to take a random second segment from one "
            "of the others"
        )
    return [
        made
        for place in range(len(documents))
        for made in _of_document(documents, place, objective, max_tokens, random)
    ]


def _of_document(
    documents: Sequence[Sequence[Sentence]],
    place: int,
    objective: Objective,
    max_tokens: int,
    random: np.random.Generator,
) -> Iterator[Segments]:
    document, begin = documents[place], 0
    while begin < len(document):
        end = _end_of_chunk(document, begin, max_tokens)
        chunk = document[begin:end]
        if sum(map(len, chunk)) < MIN_TOKENS:
            begin = end
            continue
        if objective == "mlm":
            yield Segments(_joined(chunk)[:max_tokens], [], TOGETHER)
            begin = end
            continue
        n_first = int(random.integers(1, len(chunk))) if len(chunk) > 1 else 1
        first = _joined(chunk[:n_first])
        is_apart = bool(random.integers(2))
        if objective == "mlm+nsp" and (is_apart or len(chunk) == 1):
            room = max(max_tokens - len(first), max_tokens // 4)
            second = _from_another(documents, place, room, random)
            yield Segments(*_cut(first, second, max_tokens), APART)
            begin += n_first  # what would have followed is used again
            continue
        second = _joined(chunk[n_first:])
        if len(chunk) > 1:
            if objective == "mlm+sop" and is_apart:
                yield Segments(*_cut(second, first, max_tokens), APART)
            else:
                yield Segments(*_cut(first, second, max_tokens), TOGETHER)
        begin = end


def _end_of_chunk(document: Sequence[Sentence], begin: int, max_tokens: int) -> int:
    """As many sentences as fit, at least one."""
    length, end = len(document[begin]), begin + 1
    while end < len(document) and length + len(document[end]) <= max_tokens:
        length += len(document[end])
        end += 1
    return end


def _from_another(
    documents: Sequence[Sequence[Sentence]], place: int, room: int, random: np.random.Generator
) -> list[int]:
    other = (place + int(random.integers(1, len(documents)))) % len(documents)
    begin = int(random.integers(len(documents[other])))
    end = _end_of_chunk(documents[other], begin, room)
    return _joined(documents[other][begin:end])[:room]


def _cut(first: list[int], second: list[int], max_tokens: int) -> tuple[list[int], list[int]]:
    """Shorten the longer one until both fit."""
    excess = max(0, len(first) + len(second) - max_tokens)
    if not excess:
        return first, second
    half = max_tokens // 2
    if len(first) <= half:
        return first, second[: max_tokens - len(first)]
    if len(second) <= half:
        return first[: max_tokens - len(second)], second
    return first[:half], second[: max_tokens - half]


def _joined(sentences: Sequence[Sentence]) -> list[int]:
    return [token for sentence in sentences for token in sentence]
