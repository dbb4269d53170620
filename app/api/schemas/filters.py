"""Filters and facets. What a filter may be is checked by `app.filters.parse_filter`."""

from typing import Annotated, Any, Self

from pydantic import Field

from app.api.schemas import ResponseBody
from app.domain import Facet

MAX_FACETS = 20
MAX_FACET_VALUES = 1_000
MAX_FIELD_NAME_CHARS = 512

FilterJson = Annotated[
    dict[str, Any],
    Field(
        description="Only documents whose metadata satisfy it are searched. An object with `and` or `or` (a "
        "list of filters), `not` (a filter), or `field` with one of `eq`, `in`, `exists`, or with limits "
        "`gt`, `gte`, `lt`, `lte`, which are numbers or ISO 8601 dates. A list matches when any of its "
        "elements does; kinds are never converted. docs/filters.md has the truth table.",
        examples=[
            {"field": "lang", "in": ["en", "de"]},
            {"and": [{"field": "published", "gte": "2023-01-01"}, {"not": {"field": "tags", "eq": "draft"}}]},
        ],
    ),
]
FacetNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_FIELD_NAME_CHARS)]],
    Field(
        max_length=MAX_FACETS,
        description="Metadata fields whose values are counted over all documents that satisfy the filter.",
        examples=[["lang", "year"]],
    ),
]
FacetLimit = Annotated[
    int, Field(ge=1, le=MAX_FACET_VALUES, description="Most values to show of each field in `facets`.")
]


class FacetValueResponse(ResponseBody):
    value: str | bool | int | float
    n_documents: int = Field(description="Documents that hold the value.")


class FacetResponse(ResponseBody):
    values: list[FacetValueResponse] = Field(description="The values of the most documents, most first.")
    n_other_values: int = Field(description="Values that are not shown.")
    n_other: int = Field(description="Documents of the values that are not shown, summed over these.")
    n_missing: int = Field(description="Documents without a value: missing, null or an empty list.")

    @classmethod
    def of(cls, facet: Facet) -> Self:
        return cls.model_validate(facet)
