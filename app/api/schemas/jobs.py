"""Jobs: accepted writes, and what became of each input."""

import datetime as dt
from collections.abc import Mapping

from pydantic import Field

from app.api.schemas import ResponseBody
from app.domain import JobKind, JobState, OutcomeStatus


class JobResponse(ResponseBody):
    id: str
    kind: JobKind
    collection: str
    state: JobState = Field(
        description="`succeeded`: every input has an outcome, of which some may be `rejected`."
    )
    n_inputs: int = Field(description="Documents, ids or files in the request.")
    n_done: int = Field(description="Inputs that have an outcome.")
    counts: Mapping[OutcomeStatus, int] = Field(description="Number of inputs per outcome.")
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    error: str | None = Field(description="Why it failed.")


class OutcomeResponse(ResponseBody):
    ordinal: int = Field(description="0-based position in the request.")
    document_id: str | None = Field(description="Null where none could be read.")
    status: OutcomeStatus
    n_documents: int = Field(description="Documents that the input stands for; a file may hold many.")
    n_passages: int = Field(description="Passages of these documents.")
    n_tokens: int = Field(description="Tokens of these documents.")
    error: str | None = Field(description="For `rejected`: what was wrong and what is allowed.")
    warnings: list[str] = Field(description="Accepted, but worth a look.")


class JobsResponse(ResponseBody):
    jobs: list[JobResponse] = Field(description="Newest first.")
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")


class OutcomesResponse(ResponseBody):
    outcomes: list[OutcomeResponse] = Field(description="By ordinal.")
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")


class FinishedJobResponse(ResponseBody):
    job: JobResponse
    outcomes: list[OutcomeResponse] = Field(description="Of every input, by ordinal.")


class WriteResponse(ResponseBody):
    job_id: str = Field(description="The job that did it.")
    document_id: str
    status: OutcomeStatus
    n_passages: int = Field(description="Passages it was split into.")
    n_tokens: int = Field(description="Tokens of its text.")
    warnings: list[str] = Field(description="Accepted, but worth a look.")
