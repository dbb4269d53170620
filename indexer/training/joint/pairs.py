"""Groups as token ids: `[CLS] question [SEP] title passage [SEP]`, with targets for both heads."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.tokenizer import Ids, Tokenizer, Tokens, title_limit
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group

MAX_QUESTION_TOKENS = 64
STEP = 32
"""Lengths are padded to multiples of this, because PyTorch keeps prepared code for every shape it sees."""
MIN_LENGTH = 96
CUT_SPREAD = 7
"""What is cut ends up to a seventh short of its limit, as chance will. Were all cut to the limit, the length
itself would tell which passages do not answer: they are cut more often than those that do."""
SHORT = 128
SHORT_SHARE = 0.5
"""Of the passages that stand alone, read in a window of `SHORT` tokens: more questions for the same work."""
TITLE_SHARE = 0.6
"""Of pairs that keep their title, so that the model reads passages with and without one."""
IGNORED = -1


@dataclass(frozen=True, slots=True)
class Pair:
    ids: Ids  # (t,)
    text_start: int
    """Of the passage's text among the tokens: the question, its borders and the title come before."""
    n_question: int
    """Tokens of the first segment, `[CLS] question [SEP]`."""
    start: int
    """First token of the answer, 0 for none, IGNORED where it is not known."""
    end: int
    """Last token of the answer."""
    relevance: float
    """1, 0, or NaN where it is not judged."""


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    pairs: Sequence[Pair]

    @property
    def length(self) -> int:
        return padded(max(len(pair.ids) for pair in self.pairs))


def padded(length: int) -> int:
    return max(STEP, -(-length // STEP) * STEP)


class PairEncoder:
    """
    Args:
        max_tokens: of a pair, special tokens included.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int, choice: random.Random) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._choice = choice

    def encode(self, group: Group) -> EncodedGroup:
        """Passages that do not answer are cut to about the length of the first one: a longer one would only
        make the others' padding longer."""
        question = self._tokenizer.token_ids([group.question])[0][:MAX_QUESTION_TOKENS]
        limit = self._max_tokens
        if len(group.candidates) == 1 and self._choice.random() < SHORT_SHARE:
            limit = min(limit, SHORT)
        pairs: list[Pair] = []
        for candidate in group.candidates:
            pair = self._pair(question, candidate, limit)
            limit = min(limit, max(MIN_LENGTH, padded(len(pair.ids)))) if not pairs else limit
            pairs.append(pair)
        return EncodedGroup(tuple(pairs))

    def _pair(self, question: Ids, candidate: Candidate, limit: int) -> Pair:
        first, last = self._tokenizer.prefix, self._tokenizer.suffix
        title = self._title(candidate)
        text = self._tokenizer.tokenize(candidate.text)
        text_start = len(first) + len(question) + len(last) + len(title)
        room = limit - text_start - len(last)
        if len(text) > room:
            room -= self._choice.randint(0, limit // CUT_SPREAD)
        answer = _answer_tokens(text, candidate.answer)
        window = self._window(len(text), room, answer)
        if answer is not None and not window.start <= answer[0] <= answer[1] < window.stop:
            answer = None  # it is longer than the window: nothing can be learned of it
        ids = np.concatenate([first, question, last, title, text.ids[window], last])
        start, end = IGNORED, IGNORED
        if candidate.answer == NO_ANSWER:
            start, end = 0, 0
        elif answer is not None:
            start, end = (place - window.start + text_start for place in answer)
        relevance = float("nan") if candidate.relevance is None else candidate.relevance
        n_question = len(first) + len(question) + len(last)
        return Pair(ids, text_start, n_question, start, end, relevance)

    def _title(self, candidate: Candidate) -> Ids:
        if not candidate.title or self._choice.random() > TITLE_SHARE:
            return np.empty(0, dtype=np.int32)
        return self._tokenizer.token_ids([candidate.title])[0][: title_limit(self._max_tokens)]

    def _window(self, n: int, room: int, answer: tuple[int, int] | None) -> slice:
        """At most `room` tokens, around the answer where there is one."""
        if n <= room:
            return slice(0, n)
        low, high = 0, n - room
        if answer is not None:
            low, high = max(0, answer[1] + 1 - room), min(answer[0], n - room)
            begin = self._choice.randint(min(low, high), high)
        else:
            begin = 0 if self._choice.random() < 0.5 else self._choice.randint(low, high)
        return slice(begin, begin + room)


def _answer_tokens(text: Tokens, answer: tuple[int, int] | None) -> tuple[int, int] | None:
    """First and last token that the answer touches."""
    if answer is None or answer == NO_ANSWER:
        return None
    start = int(np.searchsorted(text.ends, answer[0], side="right"))
    end = int(np.searchsorted(text.starts, answer[1], side="left")) - 1
    return (start, end) if start <= end else None


def as_arrays(groups: Sequence[EncodedGroup], *, pad_id: int) -> dict[str, NDArray[np.generic]]:
    """One batch: all pairs of the groups below each other, padded to one length.

    Returns:
        input_ids, attention_mask, token_type_ids, allowed (n, t); start, end, relevance, group (n,).
    """
    pairs = [(g, pair) for g, group in enumerate(groups) for pair in group.pairs]
    n, length = len(pairs), max(group.length for group in groups)
    ids = np.full((n, length), pad_id, dtype=np.int64)
    mask, segments = np.zeros((n, length), dtype=np.int64), np.zeros((n, length), dtype=np.int64)
    allowed = np.zeros((n, length), dtype=np.bool_)
    allowed[:, 0] = True
    for row, (_, pair) in enumerate(pairs):
        t = len(pair.ids)
        ids[row, :t] = pair.ids
        mask[row, :t] = 1
        segments[row, pair.n_question : t] = 1
        allowed[row, pair.text_start : t - 1] = True
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": segments,
        "allowed": allowed,
        "start": np.array([pair.start for _, pair in pairs], dtype=np.int64),
        "end": np.array([pair.end for _, pair in pairs], dtype=np.int64),
        "relevance": np.array([pair.relevance for _, pair in pairs], dtype=np.float32),
        "group": np.array([g for g, _ in pairs], dtype=np.int64),
    }
