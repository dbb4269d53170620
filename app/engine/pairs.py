"""Question and passage as what a cross-encoder or reader takes: `[CLS] question [SEP] title text [SEP]`.

A text that does not fit is read in windows that overlap. Every token of it, and so every character, is owned
by exactly one window: in the middle of an overlap ownership changes hands. A span belongs to the window that
owns its first token.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.engine.inputs import is_blank
from app.engine.runner import TokenSequence
from app.engine.tokenizer import Ids, Tokenizer, Tokens, title_limit
from app.errors import BlankText

MAX_QUESTION_TOKENS = 64
"""Joint models are trained on questions of up to this; of a longer one the rest is cut, and told."""
MAX_OVERLAP_TOKENS = 128
"""As in BERT's reader (Devlin et al. 2019, run_squad.py: doc_stride)."""


@dataclass(frozen=True, slots=True)
class TitledText:
    text: str
    title: str | None = None
    """Read before the text as context; no span lies in it."""


@dataclass(frozen=True, slots=True)
class Question:
    ids: Ids
    """At most as many as a question may have."""
    n_tokens: int
    """Of the whole question, special tokens not included."""
    max_tokens: int

    @property
    def is_truncated(self) -> bool:
        return self.n_tokens > self.max_tokens


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens `first` to `end` of a text, half-open."""

    first: int
    end: int
    own_first: int
    own_end: int


@dataclass(frozen=True, slots=True)
class PairInput:
    """One window of a pair."""

    sequence: TokenSequence
    text_start: int
    """Place in the sequence of the window's first token."""
    window: Window


@dataclass(frozen=True, slots=True)
class PairInputs:
    """All windows of one pair."""

    tokens: Tokens
    """Of the text."""
    inputs: Sequence[PairInput]
    is_truncated: bool
    """More windows than were allowed: the end of the text is not read."""


class PairEncoder:
    """Safe to call from any thread.

    Args:
        max_tokens: of one input, special tokens included.
    """

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self.max_question_tokens = min(MAX_QUESTION_TOKENS, max_tokens // 4)

    def question(self, text: str) -> Question:
        """Raises BlankText."""
        if is_blank(text):
            raise BlankText("the question is blank: it needs at least one visible character")
        ids = self._tokenizer.token_ids([text])[0]
        return Question(ids[: self.max_question_tokens], len(ids), self.max_question_tokens)

    def inputs(
        self,
        question: Question,
        passage: TitledText,
        *,
        max_windows: int | None = None,
        max_text_tokens: int | None = None,
    ) -> PairInputs:
        """Every window of the text, or the first `max_windows`; at least one.

        Args:
            max_text_tokens: of the text in a window; None takes what there is room for.
        """
        template = self._tokenizer.pair
        tokens = self._tokenizer.tokenize(passage.text)
        title = self._title(passage.title)
        head = np.concatenate([template.before, question.ids, template.between, title])
        room = self._max_tokens - len(head) - len(template.after)
        room = min(room, max_text_tokens or room)
        cut = list(windows(len(tokens), room))
        inputs = [
            PairInput(
                TokenSequence(
                    np.concatenate([head, tokens.ids[window.first : window.end], template.after]),
                    self._segments(len(question.ids), len(title) + window.end - window.first),
                ),
                text_start=len(head),
                window=window,
            )
            for window in cut[:max_windows]
        ]
        return PairInputs(tokens, inputs, is_truncated=len(inputs) < len(cut))

    def _title(self, title: str | None) -> Ids:
        if not title:
            return np.empty(0, dtype=np.int32)
        return self._tokenizer.token_ids([title])[0][: title_limit(self._max_tokens)]

    def _segments(self, n_first: int, n_second: int) -> Ids:
        template = self._tokenizer.pair
        lengths = (len(template.before), n_first, len(template.between), n_second, len(template.after))
        return np.repeat(np.array(template.segments, dtype=np.int32), lengths)


def windows(n_tokens: int, room: int) -> Iterator[Window]:
    """Windows of at most `room` tokens over a text; only a single one is shorter.

    >>> [(w.first, w.end, w.own_first, w.own_end) for w in windows(10, 6)]
    [(0, 6, 0, 5), (3, 9, 5, 7), (4, 10, 7, 10)]
    """
    if n_tokens <= room:
        yield Window(0, n_tokens, 0, n_tokens)
        return
    step = room - min(MAX_OVERLAP_TOKENS, room // 2)
    starts = [*range(0, n_tokens - room, step), n_tokens - room]
    borders = [
        0,
        *((later + start + room + 1) // 2 for start, later in pairwise(starts)),
    ]
    for i, start in enumerate(starts):
        own_end = borders[i + 1] if i + 1 < len(borders) else n_tokens
        yield Window(start, start + room, borders[i], own_end)
