"""Collections: named sets of documents made by one model and one splitter."""

import datetime as dt
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.answers import MAX_CANDIDATES
from app.domain import Collection, CollectionSettings, Fusion, IndexSettings, SearchSettings, SplitterSettings

DEFAULTS = SplitterSettings()
DEFAULT_FUSION = Fusion()
MIN_TOKENS, MAX_TOKENS, MAX_OVERLAP_TOKENS = 32, 8_192, 4_096
MIN_DEPTH, MAX_DEPTH = 10, 2_000
FUSION_METHOD = (
    "convex: the weighted mean of both scores, each stretched to 0..1. "
    "rrf: reciprocal rank fusion, which looks at ranks alone."
)
DENSE_WEIGHT = "Of the cosine in the convex combination."
FUSION_DEPTH = (
    "Passages that the dense leg contributes at first; by words there are four times as many. Scores depend "
    "on it a little: a passage that is not among those by words counts 0 there."
)
EXACT_LIMIT = (
    "Vectors above which their index is approximate, which is faster and finds a little less; null leaves it "
    "to BIFOCAL_EXACT_LIMIT. Below 1,000 vectors it is always exact."
)
MAX_EXACT_LIMIT = 10**9
CANDIDATES = "Documents that a cross-encoder ranks anew; null leaves it to the search."


class SplitterRequest(RequestBody):
    """How documents become passages, counted in the encoder's tokens."""

    max_tokens: int = Field(
        DEFAULTS.max_tokens,
        ge=MIN_TOKENS,
        le=MAX_TOKENS,
        description="Longest passage in tokens, special tokens and title included; "
        "the encoder's own limit counts where it is smaller.",
    )
    overlap_tokens: int = Field(
        DEFAULTS.overlap_tokens,
        ge=0,
        le=MAX_OVERLAP_TOKENS,
        description="Tokens that a passage repeats of the one before it; at most half of max_tokens.",
    )

    @model_validator(mode="after")
    def _overlap_is_at_most_half(self) -> Self:
        if self.overlap_tokens > self.max_tokens // 2:
            raise ValueError(f"overlap_tokens is at most half of max_tokens, here {self.max_tokens // 2}")
        return self

    def settings(self) -> SplitterSettings:
        return SplitterSettings(max_tokens=self.max_tokens, overlap_tokens=self.overlap_tokens)


class IndexRequest(RequestBody):
    """How vectors are searched."""

    exact_limit: int | None = Field(None, ge=0, le=MAX_EXACT_LIMIT, description=EXACT_LIMIT)

    def settings(self) -> IndexSettings:
        return IndexSettings(self.exact_limit)


class CollectionRequest(RequestBody):
    splitter: SplitterRequest = Field(
        default_factory=SplitterRequest, description="Changed later by POST .../reindex alone."
    )
    index_settings: IndexRequest = Field(
        default_factory=IndexRequest, description="Changed later by POST .../reindex alone."
    )

    def settings(self) -> CollectionSettings:
        return CollectionSettings(self.splitter.settings(), self.index_settings.settings())


class SplitterResponse(ResponseBody):
    max_tokens: int = Field(description="Longest passage in tokens, special tokens and title included.")
    overlap_tokens: int = Field(description="Tokens that a passage repeats of the one before it.")
    version: int = Field(description="Raised when the same text would be split otherwise.")


class IndexResponse(ResponseBody):
    exact_limit: int | None = Field(description=EXACT_LIMIT)


class FusionSettingsRequest(RequestBody):
    method: Literal["convex", "rrf"] = Field(DEFAULT_FUSION.method, description=FUSION_METHOD)
    dense_weight: float = Field(DEFAULT_FUSION.dense_weight, ge=0, le=1, description=DENSE_WEIGHT)
    depth: int = Field(DEFAULT_FUSION.depth, ge=MIN_DEPTH, le=MAX_DEPTH, description=FUSION_DEPTH)


class SearchSettingsRequest(RequestBody):
    fusion: FusionSettingsRequest = Field(
        default_factory=FusionSettingsRequest, description="Of the two legs of hybrid search."
    )
    candidates: int | None = Field(None, ge=1, le=MAX_CANDIDATES, description=CANDIDATES)

    def settings(self) -> SearchSettings:
        return SearchSettings(Fusion(**dict(self.fusion)), self.candidates)


class FusionSettingsResponse(ResponseBody):
    method: Literal["convex", "rrf"] = Field(description=FUSION_METHOD)
    dense_weight: float = Field(description=DENSE_WEIGHT)
    depth: int = Field(description=FUSION_DEPTH)


class SearchSettingsResponse(ResponseBody):
    fusion: FusionSettingsResponse
    candidates: int | None = Field(description=CANDIDATES)


class CollectionResponse(ResponseBody):
    name: str
    splitter: SplitterResponse
    index_settings: IndexResponse
    search: SearchSettingsResponse = Field(
        description="What searches take where the request does not say; see PUT .../search-settings."
    )
    model: str = Field(description="Bi-encoder that makes its vectors.")
    fingerprint: str = Field(description="Digest of all that decides its vectors; another one is refused.")
    created_at: dt.datetime
    standby_of: str | None = Field(
        description="Name of the collection that it is another form of, made by POST .../reindex. It takes "
        "no documents of its own, and can be searched, evaluated and deleted."
    )
    is_building: bool = Field(description="A standby that has not all of the documents yet.")

    @classmethod
    def of(cls, collection: Collection) -> "CollectionResponse":
        return CollectionResponse(
            name=collection.name,
            splitter=SplitterResponse.model_validate(collection.settings.splitter),
            index_settings=IndexResponse.model_validate(collection.settings.index),
            search=SearchSettingsResponse.model_validate(collection.search),
            model=collection.model,
            fingerprint=collection.fingerprint,
            created_at=collection.created_at,
            standby_of=collection.standby_of,
            is_building=collection.is_building,
        )


class CollectionStatsResponse(ResponseBody):
    n_documents: int = Field(description="Documents.")
    n_passages: int = Field(description="Passages of all documents.")
    n_tokens: int = Field(description="Tokens of all texts.")
    unknown_share: float = Field(
        description="Share of tokens that the model cannot read, 0 to 1; high for a language it was not "
        "made for."
    )
    size_bytes: int = Field(description="Stored texts in bytes.")


class IndexStatsResponse(ResponseBody):
    generation: int = Field(description="Number of the published base; 0 if there is none yet.")
    n_base: int = Field(description="Vectors in the base file.")
    n_tail: int = Field(description="Newer vectors, searched beside the base.")
    n_deleted: int = Field(description="Deleted vectors that still take room in the base.")
    size_bytes: int = Field(description="Index files in bytes.")
    details: Mapping[str, object] = Field(
        description="Kind of index and, where it is approximate, its measured recall."
    )


class CollectionDetailsResponse(CollectionResponse):
    stats: CollectionStatsResponse
    index: Mapping[str, IndexStatsResponse] = Field(
        description="By view: `passages` (asymmetric search) and `documents` (symmetric search)."
    )


class CollectionsResponse(ResponseBody):
    collections: list[CollectionResponse] = Field(description="All, by name.")
