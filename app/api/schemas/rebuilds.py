"""Re-indexing: what shall be otherwise in the new form of a collection."""

from pydantic import Field

from app.api.schemas import RequestBody
from app.api.schemas.collections import MAX_OVERLAP_TOKENS, MAX_TOKENS, MIN_TOKENS, IndexRequest
from app.domain import COLLECTION_NAME
from app.services.reindexing import Changes


class SplitterChange(RequestBody):
    """What is left out stays as it is."""

    max_tokens: int | None = Field(
        None, ge=MIN_TOKENS, le=MAX_TOKENS, description="Longest passage in tokens."
    )
    overlap_tokens: int | None = Field(
        None,
        ge=0,
        le=MAX_OVERLAP_TOKENS,
        description="Tokens that a passage repeats of the one before it; at most half of max_tokens.",
    )


class ReindexRequest(RequestBody):
    splitter: SplitterChange = Field(
        default_factory=SplitterChange, description="How documents become passages."
    )
    index_settings: IndexRequest | None = Field(None, description="Null leaves them as they are.")
    model: str | None = Field(
        None,
        max_length=500,
        description="Name of a bi-encoder that runs, as GET /v1/models shows it; by default that of "
        "BIFOCAL_EMBEDDER.",
    )
    standby: str | None = Field(
        None,
        pattern=COLLECTION_NAME,
        description="Name of the new form until the switch, and of the former one afterwards; by default the "
        "collection's with -standby behind it.",
    )

    def changes(self) -> Changes:
        return Changes(
            max_tokens=self.splitter.max_tokens,
            overlap_tokens=self.splitter.overlap_tokens,
            index=None if self.index_settings is None else self.index_settings.settings(),
        )
