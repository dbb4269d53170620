"""Aliases: other names of collections."""

import datetime as dt

from pydantic import Field

from app.api.schemas import RequestBody, ResponseBody


class AliasRequest(RequestBody):
    collection: str = Field(max_length=63, description="Name of a collection, not of another alias.")


class AliasResponse(ResponseBody):
    name: str
    collection: str = Field(description="Name of the collection that it leads to.")
    created_at: dt.datetime
    updated_at: dt.datetime = Field(description="When it was last pointed at another collection.")


class AliasesResponse(ResponseBody):
    aliases: list[AliasResponse] = Field(description="All, by name.")
