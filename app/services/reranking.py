"""Second stage of asymmetric search: the best hits, looked at again by a model that reads query and passage
together."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Answer, Hit, PassageHit, Rerank, Reranking
from app.engine.cross_encoder import MAX_WINDOWS
from app.engine.fusion import LEAST_COSINE, RRF_CONSTANT
from app.engine.pairs import TitledText
from app.engine.probability import sigmoid
from app.engine.reader import Reader, Reading
from app.engine.reading_models import ReadingModels
from app.engine.reranker import Reranker
from app.errors import ModelNotConfigured, TextTooLong
from app.services.candidates import DECIMALS
from app.services.hits import utf16_within

NO_RERANKER = (
    "no model reranks here: set BIFOCAL_RERANKER to a cross-encoder, or put the joint model into the folder "
    "BIFOCAL_MODELS"
)
NO_READER = (
    "no model finds answers here: set BIFOCAL_READER to a model for question answering, or put the joint "
    "model into the folder BIFOCAL_MODELS"
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reranked:
    hits: tuple[Hit, ...]
    """Best first; of each the reranked passages first."""
    reranking: Reranking


class SecondStage:
    """One query's second stage.

    Args:
        answers: whether to find the answer in each hit, too.
        began: when the search did, by `time.monotonic`.

    Raises:
        ModelNotConfigured: no model has the role that is needed.
    """

    def __init__(
        self, models: ReadingModels, query: str, rerank: Rerank, *, answers: bool, began: float
    ) -> None:
        self.reranker = needed_reranker(models)
        self._reader = needed_reader(models) if answers else None
        self._is_one_pass = models.rank_as_they_read
        self._query = query
        self._rerank = rerank
        self._deadline = None if rerank.budget_ms is None else began + rerank.budget_ms / 1000

    def load(self) -> float:
        """Load the models that nobody used yet; gives the seconds, which the budget leaves out."""
        seconds = self.reranker.load() + (0.0 if self._reader is None else self._reader.load())
        if self._deadline is not None:
            self._deadline += seconds
        return seconds

    def n_passages_per_hit(self, n_documents: int) -> int:
        """How many of each hit are needed to have enough candidates."""
        if self._rerank.by == "passages":
            return self._rerank.candidates
        return math.ceil(self._rerank.candidates / max(1, n_documents))

    def refusal(self, *, truncate: bool) -> str | None:
        """Why a search that need not be reranked is not: its query is longer than the reranker takes.

        Raises:
            TextTooLong: it must be reranked, and must not be truncated.
        """
        question = self.reranker.question(self._query)
        if not question.is_truncated or (truncate and self._rerank.is_required):
            return None
        counts = f"has {question.n_tokens} tokens, the reranker takes {question.max_tokens}"
        if not self._rerank.is_required:
            return f"not reranked: the query {counts}"
        raise TextTooLong(
            f"{counts}; shorten it, allow truncation or search without reranking",
            n_tokens=question.n_tokens,
            max_tokens=question.max_tokens,
            where=("query",),
        )

    def reranked(self, hits: Sequence[Hit]) -> Reranked:
        """All hits in their new order.

        Args:
            hits: at least `candidates` of them, or all there are, best first.
        """
        choose = best_passages if self._rerank.by == "passages" else passages_in_turn
        chosen = choose(hits, self._rerank.candidates)
        passages = [TitledText(hits[h].passages[p].text, hits[h].title) for h, p in chosen]
        logits, readings, truncated = self._judged(passages)
        known = np.flatnonzero(~np.isnan(logits))
        of_hit: list[dict[int, float]] = [{} for _ in hits]
        for at in known.tolist():
            h, p = chosen[at]
            of_hit[h][p] = float(logits[at])
        scores = self._scores(hits, of_hit)
        found = [
            self._with_logits(hit, own, float(score))
            for hit, own, score in zip(hits, of_hit, scores, strict=True)
        ]
        for at, reading in enumerate(readings):
            if reading is not None:
                h, p = chosen[at]
                assert self._reader is not None
                found[h] = _with_answer(found[h], hits[h].passages[p], reading, self._reader)
        question = self.reranker.question(self._query)
        return Reranked(
            tuple(sorted(found, key=lambda hit: (-hit.score, hit.document_id))),
            Reranking(
                model=self.reranker.description.name,
                n_candidates=len(chosen),
                n_reranked=len(known),
                n_truncated=int(truncated.sum()),
                n_query_tokens=question.n_tokens,
                max_query_tokens=question.max_tokens,
            ),
        )

    def with_answers(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Where ranking has not read the passages: the answer in the best passage of each hit."""
        if self._reader is None or self._is_one_pass:
            return tuple(hits)
        return read_best_passages(self._reader, self._query, hits, deadline=self._deadline)

    def _judged(
        self, passages: Sequence[TitledText]
    ) -> tuple[Floats, Sequence[Reading | None], NDArray[np.bool_]]:
        """Logits and, of a joint model that is to find answers, its readings: both out of one pass."""
        if self._reader is None or not self._is_one_pass:
            found = self.reranker.rerank(self._query, passages, deadline=self._deadline)
            return found.logits, (), found.truncated
        readings = self._reader.read(
            self._query, passages, max_windows=MAX_WINDOWS, deadline=self._deadline
        ).passages
        logits = [np.nan if each is None or each.relevance is None else each.relevance for each in readings]
        truncated = [each is not None and each.is_truncated for each in readings]
        return np.array(logits, np.float64), readings, np.array(truncated, np.bool_)

    def _scores(self, hits: Sequence[Hit], of_hit: Sequence[dict[int, float]]) -> Floats:
        logits = np.array([max(own.values(), default=np.nan) for own in of_hit])
        if np.isnan(logits).all():
            return np.array([hit.score for hit in hits])
        return self.reranker.combination.combined(logits, first_stage_shares(hits)).round(DECIMALS)

    def _with_logits(self, hit: Hit, logits: dict[int, float], score: float) -> Hit:
        if not logits:
            return dataclasses.replace(hit, score=score)
        best = max(logits.values())
        passages = [
            dataclasses.replace(passage, rerank=logits.get(p)) for p, passage in enumerate(hit.passages)
        ]
        passages.sort(key=lambda passage: (passage.rerank is None, -(passage.rerank or 0.0)))
        return dataclasses.replace(
            hit,
            score=score,
            rerank=best,
            relevance=self.reranker.probability(best),
            passages=tuple(passages),
        )


def seconds_to_load(stage: SecondStage | None, reader: Reader | None) -> float:
    """Load what nobody used yet of a second stage, or of a reader without one."""
    if stage is not None:
        return stage.load()
    return 0.0 if reader is None else reader.load()


def read_best_passages(
    reader: Reader, query: str, hits: Sequence[Hit], *, deadline: float | None = None
) -> tuple[Hit, ...]:
    """The hits, each with the answer in its best passage."""
    passages = [TitledText(hit.passages[0].text, hit.title) for hit in hits]
    readings = reader.read(query, passages, max_windows=MAX_WINDOWS, deadline=deadline).passages
    return tuple(
        hit if reading is None else _with_answer(hit, hit.passages[0], reading, reader)
        for hit, reading in zip(hits, readings, strict=True)
    )


def _with_answer(hit: Hit, passage: PassageHit, reading: Reading, reader: Reader) -> Hit:
    """The better one of the answer that the hit has and the one in this passage."""
    for answer in answers_in(passage, reading, reader):
        if hit.answer is None or answer.logit > hit.answer.logit:
            return dataclasses.replace(hit, answer=answer)
    return hit


def answers_in(passage: PassageHit, reading: Reading, reader: Reader) -> list[Answer]:
    """Best first, with offsets of the document."""
    answers = []
    relevance = passage.rerank if reading.relevance is None else reading.relevance
    for span in reading.spans:
        logit = reader.answer_logit(span, relevance)
        answers.append(
            Answer(
                text=passage.text[span.start : span.end],
                start=passage.start + span.start,
                end=passage.start + span.end,
                utf16=utf16_within(passage, passage.start + span.start, passage.start + span.end),
                page=passage.page,
                score=sigmoid(logit),
                logit=logit,
                margin=span.margin,
                relevance=relevance,
            )
        )
    return answers


def best_passages(hits: Sequence[Hit], n: int) -> list[tuple[int, int]]:
    """Places (hit, passage) of the `n` passages of greatest first-stage score in the first `n` hits."""
    places = [(h, p) for h, hit in enumerate(hits[:n]) for p in range(len(hit.passages))]
    return sorted(places, key=lambda at: (-first_stage_score(hits[at[0]].passages[at[1]]), *at))[:n]


def first_stage_score(passage: PassageHit) -> float:
    for score in (passage.fused, passage.similarity, passage.lexical):
        if score is not None:
            return score
    return 0.0


def passages_in_turn(hits: Sequence[Hit], n: int) -> list[tuple[int, int]]:
    """Places (hit, passage) of `n` passages: the best one of each of the first `n` hits, and then the second
    ones, and so on, as long as there are fewer hits than that."""
    of_hits = hits[:n]
    deepest = max((len(hit.passages) for hit in of_hits), default=0)
    places = [(h, p) for p in range(deepest) for h, hit in enumerate(of_hits) if p < len(hit.passages)]
    return places[:n]


def first_stage_shares(hits: Sequence[Hit]) -> Floats:
    """What ranks the hits in the first stage, on a scale of 0..1 that depends on the best of them alone."""
    best = hits[0]
    scores = np.array([hit.score for hit in hits], dtype=np.float64)
    if best.fused is not None:
        rrf_most = 2 / (RRF_CONSTANT + 1)
        return scores / rrf_most if best.fused <= rrf_most else scores
    least = LEAST_COSINE if best.similarity is not None else 0.0
    span = best.score - least
    return (scores - least) / span if span > 0 else np.zeros_like(scores)


def needed_reranker(models: ReadingModels) -> Reranker:
    """Raises ModelNotConfigured."""
    if models.reranker is None:
        raise ModelNotConfigured(NO_RERANKER)
    return models.reranker


def needed_reader(models: ReadingModels) -> Reader:
    """Raises ModelNotConfigured."""
    if models.reader is None:
        raise ModelNotConfigured(NO_READER)
    return models.reader
