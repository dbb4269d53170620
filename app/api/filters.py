"""Filters in the query string of a listing: the JSON that searches take in their body."""

import hashlib
import json
from typing import Annotated

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic.json_schema import SkipJsonSchema

from app.errors import BadFilter
from app.filters import Filter, parse_filter

MAX_FILTER_CHARS = 1_000
"""Percent-encoded twelve times as many bytes, beside a cursor; request lines end at 64 KiB."""

FilterText = Annotated[
    str | SkipJsonSchema[None],
    Query(
        alias="filter",
        max_length=MAX_FILTER_CHARS,
        description="JSON, as `filter` of a search: only documents whose metadata satisfy it.",
        openapi_examples={"article": {"value": '{"field": "article", "eq": "Warsaw"}'}},
    ),
]


def parse_text(text: str | None) -> Filter | None:
    """Raises RequestValidationError, whose location begins with the query parameter."""
    if text is None:
        return None
    try:
        return parse_filter(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise _refusal(("filter",), "is not JSON; a filter in JSON is allowed") from error
    except BadFilter as error:
        raise _refusal(error.where, str(error)) from error


def name_of(listing: str, text: str | None) -> str:
    """A listing under another filter is another listing."""
    if text is None:
        return listing
    return f"{listing} {hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _refusal(where: tuple[str | int, ...], message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "bad_filter", "loc": ("query", *where), "msg": message}])
