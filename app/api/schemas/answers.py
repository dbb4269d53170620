"""Questions and quoted answers."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.filters import FilterJson
from app.domain import Answer, Offsets, PassageHit
from app.services.answers import AnswerResult, FoundAnswer

MAX_QUESTION_CHARS = 10_000
MAX_ANSWERS = 100
MAX_CANDIDATES = 200
MAX_CONTEXTS = 200
MAX_CONTEXTS_CHARS = 200_000
"""Of all contexts of a request: some seconds of reading."""
PROBABILITY = "0 to 1"
LIKELY = 0.5
"""Probability from which a question counts as answered."""

QuestionText = Annotated[
    str, Field(max_length=MAX_QUESTION_CHARS, description="A question in plain words. Never parsed.")
]
Truncate = Annotated[
    bool,
    Field(
        description="Whether a question beyond the reader's limit is cut at its end (and reported as "
        "`truncated`); if not, it is refused with 422."
    ),
]
TopAnswers = Annotated[int, Field(ge=1, le=MAX_ANSWERS, description="Most answers to return.")]
MinScore = Annotated[
    float, Field(ge=0, le=1, description="Answers that are less probable than this are left out.")
]


OffsetsCounted = Annotated[
    Offsets,
    Field(
        description="What `start` and `end` of the response count: Unicode code points, as strings of Python "
        "do, or UTF-16 code units, as those of JavaScript, Java and C# do."
    ),
]
START = "Offset of its first character in the text, in code points unless `offsets` says otherwise."
END = "Offset behind its last character, counted likewise."


class AnswerRequest(RequestBody):
    question: QuestionText
    top_k: TopAnswers = 3
    candidates: int = Field(
        20, ge=1, le=MAX_CANDIDATES, description="Passages to read: those that hybrid search finds best."
    )
    budget_ms: float | None = Field(
        None,
        ge=0,
        le=600_000,
        description="Milliseconds after which no further passage is read; `n_read` tells how many were. "
        "Loading a model for its first use does not count. Null: no limit.",
    )
    min_score: MinScore = 0.0
    truncate: Truncate = True
    offsets: OffsetsCounted = "code_points"
    filter: FilterJson | None = None


class ContextsRequest(RequestBody):
    question: QuestionText
    contexts: list[Annotated[str, StringConstraints(max_length=MAX_CONTEXTS_CHARS)]] = Field(
        max_length=MAX_CONTEXTS,
        description="Texts to read, of any length; long ones in windows that overlap, to their end.",
    )
    top_k: TopAnswers = 3
    min_score: MinScore = 0.0
    truncate: Truncate = True
    offsets: OffsetsCounted = "code_points"

    @model_validator(mode="after")
    def _not_too_long(self) -> Self:
        n_chars = sum(map(len, self.contexts))
        if n_chars > MAX_CONTEXTS_CHARS:
            raise ValueError(
                f"contexts have {n_chars} characters together, at most {MAX_CONTEXTS_CHARS} may be"
            )
        return self


class AnswerResponse(ResponseBody):
    """A quotation: the document's `text[start:end]`."""

    answer: str = Field(description="The text from start to end, as it is there.")
    score: float = Field(
        description=f"Probability that it answers the question, {PROBABILITY}, calibrated where the model is."
    )
    start: int = Field(description=START)
    end: int = Field(description=END)
    page: int | None = Field(description="1-based page on which it begins; null without pages.")
    margin: float = Field(
        description="Logit of the span less that of no answer in the same window; above 0 where the reader "
        "prefers the answer. Unbounded."
    )
    relevance: float | None = Field(
        description="Raw logit of its passage's relevance, unbounded; null where no model judged it."
    )

    @classmethod
    def of_answer(cls, answer: Answer) -> "AnswerResponse":
        return AnswerResponse(**_fields(answer))


class SourceResponse(ResponseBody):
    start: int = Field(description=START)
    end: int = Field(description=END)
    text: str = Field(description="The passage that was read.")

    @classmethod
    def of(cls, passage: PassageHit) -> Self:
        place = passage.utf16 or passage
        return cls(start=place.start, end=place.end, text=passage.text)


class DocumentAnswerResponse(AnswerResponse):
    document_id: str
    title: str | None
    passage: SourceResponse
    n_occurrences: int = Field(description="Passages that gave the same answer; this is the best of them.")

    @classmethod
    def of(cls, found: FoundAnswer) -> Self:
        return cls(
            **_fields(found.answer),
            document_id=found.document_id or "",
            title=found.title,
            passage=SourceResponse.of(found.passage),
            n_occurrences=found.n_occurrences,
        )


class ContextAnswerResponse(AnswerResponse):
    context: int = Field(description="0-based place of its text among the contexts.")
    n_occurrences: int = Field(description="Times that the same answer was given; this is the best of them.")

    @classmethod
    def of(cls, found: FoundAnswer) -> Self:
        return cls(**_fields(found.answer), context=found.context or 0, n_occurrences=found.n_occurrences)


def _fields(answer: Answer) -> dict[str, Any]:
    place = answer.utf16 or answer
    return {
        "answer": answer.text,
        "score": answer.score,
        "start": place.start,
        "end": place.end,
        "page": answer.page,
        "margin": answer.margin,
        "relevance": answer.relevance,
    }


class QuestionResponse(ResponseBody):
    n_tokens: int = Field(description="Tokens of the question, special tokens not included.")
    max_tokens: int = Field(description="Most tokens of a question that the reader takes.")
    truncated: bool = Field(description="Whether the end of the question was cut off.")


class _AnswersResponse(ResponseBody):
    answerable_probability: float = Field(
        description=f"Probability that the best answer is one, {PROBABILITY}, calibrated where the model is; "
        "0 where there was nothing to read."
    )
    no_answer: bool = Field(
        description=f"Whether the question counts as not answered: that probability is below {LIKELY}."
    )
    question: QuestionResponse
    n_read: int = Field(description="Passages that were read.")
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds per stage, `load` if a model was used for the first time, and in total.",
        examples=[{"read": 41.2, "total": 48.0}],
    )


class AnswersResponse(_AnswersResponse):
    answers: list[DocumentAnswerResponse] = Field(
        description="By descending score. No answer twice, no two that overlap."
    )
    n_candidates: int = Field(
        description="Passages that were to be read; more than `n_read` where the budget was used up."
    )

    @classmethod
    def of(cls, result: AnswerResult, *, min_score: float) -> Self:
        answers = [DocumentAnswerResponse.of(found) for found in result.answers]
        return cls(
            answers=[answer for answer in answers if answer.score >= min_score],
            n_candidates=result.n_candidates,
            **_shared(result),
        )


class BlankContextResponse(ResponseBody):
    context: int = Field(description="0-based place among the contexts.")
    message: str


class ContextsResponse(_AnswersResponse):
    answers: list[ContextAnswerResponse] = Field(
        description="By descending score. No answer twice, no two of a text that overlap."
    )
    unread: list[BlankContextResponse] = Field(description="Contexts that have nothing to read.")

    @classmethod
    def of(cls, result: AnswerResult, *, min_score: float) -> Self:
        answers = [ContextAnswerResponse.of(found) for found in result.answers]
        return cls(
            answers=[answer for answer in answers if answer.score >= min_score],
            unread=[
                BlankContextResponse(context=place, message="is blank: there is nothing to read")
                for place in result.unread_contexts
            ],
            **_shared(result),
        )


def _shared(result: AnswerResult) -> dict[str, Any]:
    return {
        "answerable_probability": result.answerable_probability,
        "no_answer": result.answerable_probability < LIKELY,
        "question": QuestionResponse(
            n_tokens=result.n_question_tokens,
            max_tokens=result.max_question_tokens,
            truncated=result.n_question_tokens > result.max_question_tokens,
        ),
        "n_read": result.n_read,
        "timings_ms": result.timings_ms,
    }
