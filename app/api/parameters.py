"""Parameters in paths and queries. Path segments arrive as `app.api.middleware.Paths` leaves them."""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import BeforeValidator, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from app.domain import COLLECTION_NAME


def _decode(segment: object) -> object:
    """Undo the escapes that are left."""
    return unquote(segment) if isinstance(segment, str) else segment


CollectionName = Annotated[
    str,
    StringConstraints(pattern=COLLECTION_NAME),
    BeforeValidator(_decode),
    Path(
        alias="collection",
        description="Name of a collection, or an alias of one: 1 to 63 characters of a-z, 0-9, _ and -; the "
        "first is a letter or digit.",
        openapi_examples={"demo": {"value": "demo"}},
    ),
]

AliasName = Annotated[
    str,
    StringConstraints(pattern=COLLECTION_NAME),
    BeforeValidator(_decode),
    Path(
        alias="alias",
        description="1 to 63 characters of a-z, 0-9, _ and -; the first is a letter or digit.",
        openapi_examples={"current": {"value": "current"}},
    ),
]

DocumentId = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(_decode),
    Path(
        description="Id of the document, percent-encoded: a/b may be written a%2Fb or a/b.",
        openapi_examples={"paragraph": {"value": "Warsaw/0"}},
    ),
]

ClassifierName = Annotated[
    str,
    StringConstraints(pattern=COLLECTION_NAME),
    BeforeValidator(_decode),
    Path(
        alias="classifier",
        description="1 to 63 characters of a-z, 0-9, _ and -; the first is a letter or digit.",
        openapi_examples={"intents": {"value": "intents"}},
    ),
]

JobId = Annotated[
    str,
    BeforeValidator(_decode),
    Path(description="Id of the job, from the answer that accepted it."),
]

EvaluationId = Annotated[
    str,
    BeforeValidator(_decode),
    Path(description="Id of the evaluation, from the answer that accepted it."),
]

Limit = Annotated[int, Query(ge=1, le=1000, description="Most entries on the page.")]
Cursor = Annotated[
    str | SkipJsonSchema[None], Query(max_length=4096, description="`next_cursor` of the page before.")
]
