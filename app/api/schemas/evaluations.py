"""Judged queries, the ways of searching to compare, and what came of it."""

import datetime as dt
from collections.abc import Hashable, Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.answers import MAX_CANDIDATES
from app.api.schemas.collections import FusionSettingsResponse
from app.api.schemas.jobs import JobResponse
from app.api.schemas.searches import FusionRequest
from app.domain import Collection, Job, JobState, Mode
from app.storage.rows import JobReport

MAX_QUERIES = 2_000
MAX_CONFIGURATIONS = 6
MAX_QUERY_CHARS = 10_000
MAX_JUDGEMENTS = 10_000
NAME = "^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$"
GREATEST = 2**31 - 1
RERANK = "Whether a model that reads query and passage together ranks the best hits anew."
MODE = "hybrid: by meaning and by words, fused. dense: by meaning alone. lexical: by words alone."


def _require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank: it needs at least one visible character")
    return text


Relevance = Annotated[int, Field(ge=-GREATEST, le=GREATEST)]


class JudgedQuery(RequestBody):
    id: str = Field(min_length=1, max_length=512)
    text: Annotated[str, AfterValidator(_require_text)] = Field(max_length=MAX_QUERY_CHARS)
    judgements: dict[str, Relevance] = Field(
        max_length=MAX_JUDGEMENTS,
        description="By document id: greater is more relevant, 0 and below is not.",
    )


class EvaluationConfiguration(RequestBody):
    name: str = Field(pattern=NAME, description="By which the result names it.")
    mode: Mode = Field("hybrid", description=MODE)
    fusion: FusionRequest | None = Field(
        None, description="For hybrid; the default is that of the collection's search settings."
    )
    rerank: bool = Field(False, description=RERANK)
    candidates: int | None = Field(
        None, ge=1, le=MAX_CANDIDATES, description="Documents that are ranked anew; null as searches have it."
    )

    def over(self, collection: Collection) -> dict[str, Any]:
        """As it is stored: settings that change later do not change the evaluation."""
        fusion = (
            collection.search.fusion if self.fusion is None else self.fusion.over(collection.search.fusion)
        )
        shown = FusionSettingsResponse.model_validate(fusion).model_dump()
        return {
            "name": self.name,
            "mode": self.mode,
            "fusion": shown if self.mode == "hybrid" else None,
            "rerank": self.rerank,
            "candidates": self.candidates or collection.search.candidates,
        }


def modes() -> list[EvaluationConfiguration]:
    chosen: tuple[Mode, ...] = ("lexical", "dense", "hybrid")
    return [EvaluationConfiguration(name=mode, mode=mode) for mode in chosen]


Configurations = Annotated[
    list[EvaluationConfiguration],
    Field(
        min_length=1,
        max_length=MAX_CONFIGURATIONS,
        description="Ways of searching to compare; by default lexical, dense and hybrid.",
    ),
]


class EvaluationRequest(RequestBody):
    queries: list[JudgedQuery] = Field(min_length=1, max_length=MAX_QUERIES)
    configurations: Configurations = Field(default_factory=modes)

    @field_validator("configurations")
    @classmethod
    def _names_differ(cls, configurations: list[EvaluationConfiguration]) -> list[EvaluationConfiguration]:
        _require_different("configurations", (each.name for each in configurations))
        return configurations

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        _require_different("queries", (query.id for query in self.queries))
        if not any(max(query.judgements.values(), default=0) > 0 for query in self.queries):
            raise ValueError("no query has a relevant document: a judgement above 0")
        return self


def _require_different(what: str, names: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{name!r} is there twice among the {what}")
        seen.add(name)


class EstimateResponse(ResponseBody):
    mean: float = Field(description="Over the queries, 0 to 1.")
    low: float | None = Field(description="Lower end of the 95 % interval; null for a single query.")
    high: float | None = Field(description="Upper end of the 95 % interval; null for a single query.")


class LatencyResponse(ResponseBody):
    p50: float = Field(description="Median in milliseconds, one query at a time.")
    p95: float = Field(description="95th percentile in milliseconds.")


class MeasuredResponse(ResponseBody):
    name: str
    metrics: Mapping[str, EstimateResponse] = Field(description="nDCG@10, MRR@10, Recall@100, MAP@100.")
    latency_ms: Mapping[str, LatencyResponse] = Field(description="By stage.")
    n_truncated: int = Field(description="Queries whose end was cut off.")


class DifferenceResponse(ResponseBody):
    metric: str
    first: str
    second: str
    difference: float = Field(description="Mean of the second less mean of the first, -1 to 1.")
    p_value: float = Field(
        description="0 to 1, of a paired randomisation test, corrected for the number of pairs."
    )


class ResultResponse(ResponseBody):
    configurations: list[MeasuredResponse]
    differences: list[DifferenceResponse] = Field(description="Of each pair of configurations.")
    notes: list[str] = Field(description="Queries that were left out or cut.")
    ndcg_by_query: Mapping[str, Mapping[str, float]] = Field(
        description="By configuration and query id: nDCG@10."
    )


class ConfigurationResponse(ResponseBody):
    name: str
    mode: Literal["hybrid", "dense", "lexical"] = Field(description=MODE)
    fusion: FusionSettingsResponse | None = Field(description="Null unless hybrid.")
    rerank: bool = Field(description=RERANK)
    candidates: int | None = Field(description="Documents that are ranked anew; null as searches have it.")


class RequestedResponse(ResponseBody):
    """The part of the stored request that is shown."""

    configurations: list[ConfigurationResponse]


class EvaluationResponse(ResponseBody):
    id: str = Field(description="Also that of its job.")
    collection: str
    state: JobState
    n_queries: int = Field(description="Queries in the request.")
    n_done: int = Field(description="Queries asked so far, as a share of all configurations.")
    configurations: list[ConfigurationResponse]
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    error: str | None = Field(description="Why it failed.")
    result: ResultResponse | None = Field(description="Null until it has succeeded.")

    @classmethod
    def of(cls, job: Job, report: JobReport) -> Self:
        requested = RequestedResponse.model_validate_json(report.request)
        return cls(
            id=job.id,
            collection=job.collection,
            state=job.state,
            n_queries=job.n_inputs,
            n_done=job.n_done,
            configurations=requested.configurations,
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            error=job.error,
            result=None if report.result is None else ResultResponse.model_validate_json(report.result),
        )


class EvaluationsResponse(ResponseBody):
    evaluations: list[JobResponse] = Field(description="Newest first, as jobs.")
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")
