"""Documents as they are sent and shown.

The shape is checked here; what a text, title or metadata may contain is checked by the worker, for each
document on its own.
"""

import datetime as dt
from typing import Annotated

from pydantic import Field

from app.api.schemas import RequestBody, ResponseBody
from app.domain import StoredDocument

Finite = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | bool | int | Finite | None
Metadata = dict[str, Scalar | list[Scalar]]

TEXT = "The text. Passages are slices of it, and offsets count its Unicode code points."
TITLE = "Given to the encoder as context of every passage."
METADATA = "Flat: each value is a string, number, boolean, null, or a list of these."


class DocumentContent(RequestBody):
    text: str = Field(description=TEXT)
    title: str | None = Field(None, description=TITLE)
    metadata: Metadata | None = Field(None, description=METADATA)


class DocumentInput(DocumentContent):
    id: str = Field(
        min_length=1,
        max_length=512,
        description="Any string of up to 512 bytes in UTF-8; an existing document of this id is replaced.",
    )


class DocumentBatch(RequestBody):
    documents: list[DocumentInput]


class DocumentHead(ResponseBody):
    id: str
    title: str | None
    metadata: Metadata
    n_chars: int = Field(description="Length of the text in Unicode code points.")
    n_passages: int = Field(description="Passages it was split into.")
    n_tokens: int = Field(description="Tokens of its text.")
    unknown_share: float = Field(description="Share of tokens that the model cannot read, 0 to 1.")
    created_at: dt.datetime
    updated_at: dt.datetime


class DocumentResponse(DocumentHead):
    text: str = Field(description=TEXT)
    page_starts: list[int] = Field(
        description="Offset in the text at which page 1, 2, ... begins, in code points; empty without pages."
    )

    @classmethod
    def of(cls, stored: StoredDocument) -> "DocumentResponse":
        document = stored.document
        return DocumentResponse(
            id=document.id,
            title=document.title,
            metadata=document.metadata,
            n_chars=len(document.text),
            n_passages=stored.n_passages,
            n_tokens=stored.n_tokens,
            unknown_share=stored.unknown_share,
            created_at=stored.created_at,
            updated_at=stored.updated_at,
            text=document.text,
            page_starts=list(document.page_starts),
        )


class DocumentsResponse(ResponseBody):
    documents: list[DocumentHead] = Field(description="By id in code point order, without texts.")
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")
