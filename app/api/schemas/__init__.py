"""What is sent and answered, as pydantic models: requests refuse what they do not know.

By noun: collections, documents, searches, jobs, models, problem.
"""

from pydantic import BaseModel, ConfigDict


class RequestBody(BaseModel):
    """Types are not converted: the string "5" is not the number 5."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ResponseBody(BaseModel):
    """Made from the domain's dataclasses by their attributes."""

    model_config = ConfigDict(from_attributes=True, frozen=True)
