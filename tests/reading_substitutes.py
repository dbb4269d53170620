"""A reranker and reader without a model: counts words that question and passage share."""

import re
import time
from collections.abc import Sequence

import numpy as np

from app.engine.activity import Activity
from app.engine.combination import Combination
from app.engine.description import HeadDescription
from app.engine.inputs import is_blank
from app.engine.pairs import Question, TitledText
from app.engine.probability import sigmoid
from app.engine.reader import Reading, Readings
from app.engine.reading_models import ReadingModels
from app.engine.reranker import Relevances
from app.engine.spans import Span
from app.errors import BlankText
from app.settings import Settings

WORD = re.compile(r"\w+")
MAX_QUESTION_TOKENS = 16


class WordOverlapReader:
    """Implements `Reranker` and `Reader`. Relevance is the number of question words in the passage, times 2,
    less 3; the answers are the words that are not in the question, the longest first, each with the logit of
    its length.

    Args:
        n_in_time: passages that are read before any deadline.
    """

    fault: str | None = None
    activity = Activity()
    is_loaded = True

    max_text_tokens: int | None = None
    is_default = True

    def __init__(self, *, combination: Combination | None = None, n_in_time: int = 10_000) -> None:
        self.combination = combination or Combination("linear", rerank=1.0, first_stage=0.5)
        self.n_in_time = n_in_time
        self.n_calls = 0
        self.n_read = 0
        self.description = HeadDescription(
            name="word-overlap",
            architecture="JointModel",
            fingerprint="word-overlap-1",
            max_tokens=384,
            max_question_tokens=MAX_QUESTION_TOKENS,
            runtime="python",
            labels=(),
        )

    def question(self, text: str) -> Question:
        if is_blank(text):
            raise BlankText("the question is blank")
        n = len(WORD.findall(text))
        return Question(np.zeros(min(n, MAX_QUESTION_TOKENS), np.int32), n, MAX_QUESTION_TOKENS)

    def rerank(
        self, question: str, passages: Sequence[TitledText], *, deadline: float | None = None
    ) -> Relevances:
        found = self.read(question, passages, deadline=deadline)
        logits = [np.nan if each is None else each.relevance for each in found.passages]
        return Relevances(found.question, np.array(logits, np.float64), np.zeros(len(passages), np.bool_))

    def read(
        self,
        question: str,
        passages: Sequence[TitledText],
        *,
        n_spans: int = 1,
        max_windows: int | None = None,
        deadline: float | None = None,
    ) -> Readings:
        self.n_calls += 1
        asked = set(WORD.findall(question.lower()))
        readings: list[Reading | None] = [self._reading(asked, passage, n_spans) for passage in passages]
        if deadline is not None:
            n = 0 if time.monotonic() >= deadline else self.n_in_time
            readings[n:] = [None] * len(readings[n:])
        self.n_read += sum(reading is not None for reading in readings)
        return Readings(self.question(question), readings)

    def answer_logit(self, span: Span, relevance: float | None) -> float:
        return span.margin + (relevance or 0.0)

    def load(self) -> float:
        return 0.0

    def probability(self, logit: float) -> float | None:
        return sigmoid(logit)

    def close(self) -> None:
        pass

    def _reading(self, asked: set[str], passage: TitledText, n_spans: int) -> Reading:
        words = list(WORD.finditer(passage.text))
        own = [word for word in words if word[0].lower() not in asked]
        own.sort(key=lambda word: -len(word[0]))
        spans = [Span(word.start(), word.end(), float(len(word[0])), 4.0, 0.5) for word in own[:n_spans]]
        n_shared = len(asked & {word[0].lower() for word in words})
        return Reading(tuple(spans), 2.0 * n_shared - 3.0, is_truncated=False)


def overlap_models() -> ReadingModels:
    """Both roles in one."""
    joint = WordOverlapReader()
    return ReadingModels(joint, joint)


def without_reading(_settings: Settings) -> ReadingModels:
    """As where no model ships."""
    return ReadingModels()
