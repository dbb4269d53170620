"""The one shape of every error."""

from pydantic import BaseModel, ConfigDict, Field


class ProblemLocation(BaseModel):
    location: list[str | int] = Field(
        description="Path to the offending part, beginning with body, path, query or header.",
        examples=[["body", "documents", 3, "text"]],
    )
    message: str = Field(description="What is wrong there and what is allowed.")


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Identifies the kind of problem; stable.",
        examples=["urn:bifocal:problem:collection-not-found"],
    )
    title: str = Field(description="The kind of problem in words; the same for every problem of a type.")
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(description="What happened this time and what is allowed.")
    request_id: str | None = Field(description="Equal to the X-Request-Id header; the log has it too.")
    errors: list[ProblemLocation] = Field(
        default=[], description="Each offending part of the request; absent where it cannot be named."
    )
