"""Answers to questions, quoted: out of a collection, or out of given texts."""

import dataclasses
import re
import time
import unicodedata
from collections.abc import Sequence

import numpy as np

from app.domain import Answer, Hit, Offsets, PassageHit, Utf16
from app.engine.inputs import is_blank
from app.engine.offsets import utf16_offsets
from app.engine.pairs import Question, TitledText
from app.engine.probability import sigmoid
from app.engine.reader import Reader, Readings
from app.engine.reading_models import ReadingModels
from app.errors import BlankText, TextTooLong
from app.filters import Filter
from app.services.answers import AnswerResult, FoundAnswer
from app.services.pages import on_its_page
from app.services.reranking import answers_in, best_passages, needed_reader
from app.services.search import Search
from app.services.timing import Timer
from app.storage.rows import Rows

SPANS_PER_PASSAGE = 3
"""Answers of a passage that take part in the ranking."""
ARTICLES = re.compile(r"\b(a|an|the)\b")

Found = Sequence[tuple[Hit | None, PassageHit]]
"""Passages to read, each with the hit that it is from; None: a given context."""


class Answering:
    """Safe to call from any thread.

    Every answer is weighed against "no answer" within its own window alone, and then answers of all passages
    are ranked by the log-odds that the reader's calibration gives them: a passage without an answer does not
    hide one in another.
    """

    def __init__(self, models: ReadingModels) -> None:
        self._models = models
        self._reader = needed_reader(models)

    def from_collection(
        self,
        collection_name: str,
        question: str,
        *,
        search: Search,
        rows: Rows,
        top_k: int = 3,
        candidates: int = 20,
        budget_ms: float | None = None,
        truncate: bool = True,
        condition: Filter | None = None,
        offsets: Offsets = "code_points",
    ) -> AnswerResult:
        """Answers out of the passages that hybrid search finds, several of a document if they are better.

        Raises:
            CollectionNotFound, FingerprintMismatch, Overloaded.
            BlankText: the question is.
            TextTooLong: `truncate` is False and the question exceeds the limit of the encoder or the reader.
        """
        began = time.monotonic()
        self._check(question, truncate=truncate)
        found = search.asymmetric(
            collection_name,
            question,
            top_k=candidates,
            passages_per_hit=candidates,
            truncate=truncate,
            condition=condition,
            offsets=offsets,
        )
        timer = Timer(found.timings_ms)
        hits = found.hits
        passages = [(hits[h], hits[h].passages[p]) for h, p in best_passages(hits, candidates)]
        load_s = self._load()
        if load_s:
            timer.lap("load")
        deadline = None if budget_ms is None else began + load_s + budget_ms / 1000
        result = self._read(question, passages, top_k=top_k, deadline=deadline, timer=timer)
        collection = rows.collection(collection_name)
        return dataclasses.replace(
            result,
            answers=tuple(
                dataclasses.replace(
                    each, answer=on_its_page(each.answer, each.document_id or "", rows, collection)
                )
                for each in result.answers
            ),
        )

    def from_contexts(
        self,
        question: str,
        contexts: Sequence[str],
        *,
        top_k: int = 3,
        truncate: bool = True,
        offsets: Offsets = "code_points",
    ) -> AnswerResult:
        """Answers out of given texts. Blank ones are told apart and not read.

        Raises:
            BlankText: the question is.
            TextTooLong: `truncate` is False and the question exceeds the reader's limit.
            Overloaded.
        """
        self._check(question, truncate=truncate)
        timer = Timer()
        if self._load():
            timer.lap("load")
        places = [i for i, context in enumerate(contexts) if not is_blank(context)]
        passages = [(None, _whole(contexts[i], offsets)) for i in places]
        result = self._read(question, passages, top_k=top_k, deadline=None, timer=timer, contexts=places)
        blank = tuple(i for i, context in enumerate(contexts) if is_blank(context))
        return dataclasses.replace(result, unread_contexts=blank)

    def _load(self) -> float:
        """Models that nobody used yet; gives the seconds that it took, which no budget counts."""
        reranker = self._models.reranker
        return self._reader.load() + (0.0 if reranker is None else reranker.load())

    def _check(self, question: str, *, truncate: bool) -> None:
        if is_blank(question):
            raise BlankText("is blank: it needs at least one visible character", where=("question",))
        asked = self._reader.question(question)
        if asked.is_truncated and not truncate:
            raise TextTooLong(
                f"has {asked.n_tokens} tokens, the reader takes {asked.max_tokens}; "
                "shorten it or allow truncation",
                n_tokens=asked.n_tokens,
                max_tokens=asked.max_tokens,
                where=("question",),
            )

    def _read(
        self,
        question: str,
        passages: Found,
        *,
        top_k: int,
        deadline: float | None,
        timer: Timer,
        contexts: Sequence[int] | None = None,
    ) -> AnswerResult:
        judged = self._with_relevance(question, passages, deadline)
        readings = self._reader.read(question, _texts(judged), n_spans=SPANS_PER_PASSAGE, deadline=deadline)
        merged = merge(list(_answers(judged, readings, self._reader, contexts)))
        timer.lap("read")
        asked: Question = readings.question
        return AnswerResult(
            answers=tuple(merged[:top_k]),
            answerable_probability=sigmoid(merged[0].answer.logit) if merged else 0.0,
            n_question_tokens=asked.n_tokens,
            max_question_tokens=asked.max_tokens,
            n_candidates=len(passages),
            n_read=sum(reading is not None for reading in readings.passages),
            unread_contexts=(),
            timings_ms=timer.timings_ms(),
        )

    def _with_relevance(self, question: str, passages: Found, deadline: float | None) -> Found:
        """Judged by the reranker, where that is another model than the reader."""
        if self._models.is_joint or self._models.reranker is None:
            return passages
        found = self._models.reranker.rerank(question, _texts(passages), deadline=deadline)
        return [
            (hit, passage if np.isnan(logit) else dataclasses.replace(passage, rerank=logit))
            for (hit, passage), logit in zip(passages, found.logits.tolist(), strict=True)
        ]


def merge(found: Sequence[FoundAnswer]) -> list[FoundAnswer]:
    """Best first; of answers that say the same, or that overlap in one document, the best one."""
    merged: list[FoundAnswer] = []
    for each in sorted(found, key=_rank):
        for i, better in enumerate(merged):
            if _is_same(each, better):
                merged[i] = dataclasses.replace(better, n_occurrences=better.n_occurrences + 1)
                break
        else:
            merged.append(each)
    return merged


def normalised(answer: str) -> str:
    """What two answers have in common that say the same: words in lower case, without articles.

    Source: Rajpurkar et al. 2016, section 6.1. What is nothing but punctuation stays as it is.

    >>> normalised("The  Amazon-Rainforest!")
    'amazon rainforest'
    """
    folded = unicodedata.normalize("NFKC", answer).casefold()
    words = "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join(ARTICLES.sub(" ", words).split()) or folded


def _whole(context: str, offsets: Offsets) -> PassageHit:
    units = Utf16(0, int(utf16_offsets(context, [len(context)])[0])) if offsets == "utf16" else None
    return PassageHit(0, len(context), context, page=None, similarity=None, utf16=units)


def _texts(passages: Found) -> list[TitledText]:
    return [TitledText(passage.text, None if hit is None else hit.title) for hit, passage in passages]


def _answers(
    passages: Found, readings: Readings, reader: Reader, contexts: Sequence[int] | None
) -> Sequence[FoundAnswer]:
    return [
        FoundAnswer(
            answer=answer,
            passage=passage,
            document_id=None if hit is None else hit.document_id,
            title=None if hit is None else hit.title,
            context=None if contexts is None else contexts[i],
            n_occurrences=1,
        )
        for i, ((hit, passage), reading) in enumerate(zip(passages, readings.passages, strict=True))
        if reading is not None
        for answer in answers_in(passage, reading, reader)
        if _is_quoted(answer, passage)
    ]


def _is_quoted(answer: Answer, passage: PassageHit) -> bool:
    """The last look before an answer is given: its offsets are those of its text."""
    return passage.text[answer.start - passage.start : answer.end - passage.start] == answer.text != ""


def _is_same(one: FoundAnswer, other: FoundAnswer) -> bool:
    a, b = one.answer, other.answer
    is_one_text = (one.document_id, one.context) == (other.document_id, other.context)
    overlaps = is_one_text and a.start < b.end and b.start < a.end
    return overlaps or normalised(a.text) == normalised(b.text)


def _rank(found: FoundAnswer) -> tuple[float, str, int, int]:
    return (-found.answer.logit, found.document_id or "", found.context or 0, found.answer.start)
