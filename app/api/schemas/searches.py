"""Queries and hits."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.collections import (
    DENSE_WEIGHT,
    FUSION_DEPTH,
    FUSION_METHOD,
    MAX_DEPTH,
    MIN_DEPTH,
)
from app.api.schemas.documents import Metadata
from app.api.schemas.filters import FacetLimit, FacetNames, FacetResponse, FilterJson
from app.domain import Facet, Fusion, Mode, SearchResult
from app.services.paging import MAX_REACH

MAX_QUERY_CHARS = 100_000
"""Seconds of encoding at most."""
MAX_TOP_K = 1_000
MAX_PASSAGES_PER_HIT = 20
SearchCursor = Annotated[
    str | None,
    Field(
        max_length=4096,
        description="`next_cursor` of the page before, with the other fields as they were; `top_k` is the "
        "size of the page and may differ.",
    ),
]
BM25 = "BM25, 0 or more, unbounded; 0 where no word of the query was found among the best by words."
COSINE = "Cosine, -1 to 1; greater is nearer. Comparable within one collection, whatever top_k is."


class FusionRequest(RequestBody):
    """What is left out, or null, is as in the collection's search settings."""

    method: Literal["convex", "rrf"] | None = Field(None, description=FUSION_METHOD)
    dense_weight: float | None = Field(None, ge=0, le=1, description=DENSE_WEIGHT)
    depth: int | None = Field(None, ge=MIN_DEPTH, le=MAX_DEPTH, description=FUSION_DEPTH)

    def over(self, defaults: Fusion) -> Fusion:
        return dataclasses.replace(defaults, **self.model_dump(exclude_none=True))


class AsymmetricRequest(RequestBody):
    query: str = Field(max_length=MAX_QUERY_CHARS, description="A question or a few words. Never parsed.")
    top_k: int = Field(10, ge=1, le=MAX_TOP_K, description="Most documents to return.")
    cursor: SearchCursor = None
    passages_per_hit: int = Field(
        3, ge=1, le=MAX_PASSAGES_PER_HIT, description="Most passages to show of each document."
    )
    truncate: bool = Field(
        True,
        description="Whether a query beyond the encoder's limit is cut at its end (and reported as "
        "`truncated`); if not, it is refused with 422.",
    )
    mode: Mode = Field(
        "hybrid",
        description="hybrid: by meaning and by words, fused. dense: by meaning alone. "
        "lexical: by words alone; then only documents with a word of the query are hits.",
    )
    fusion: FusionRequest | None = Field(
        None, description="For hybrid; the default is that of the collection's search settings."
    )
    filter: FilterJson | None = None
    facets: FacetNames = Field(default_factory=list)
    facet_limit: FacetLimit = 10


class SymmetricRequest(RequestBody):
    text: str | None = Field(
        None,
        max_length=MAX_QUERY_CHARS,
        description="A text to compare with whole documents. A long one is encoded in windows, none of it "
        "is cut.",
    )
    document_id: str | None = Field(
        None, max_length=512, description="A document of the collection instead; it is not among its hits."
    )
    top_k: int = Field(10, ge=1, le=MAX_TOP_K, description="Most documents to return.")
    cursor: SearchCursor = None
    filter: FilterJson | None = None
    facets: FacetNames = Field(default_factory=list)
    facet_limit: FacetLimit = 10

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.document_id is None):
            raise ValueError("give exactly one of text and document_id")
        return self


SearchRequest = AsymmetricRequest | SymmetricRequest


class PassageHitResponse(ResponseBody):
    start: int = Field(description="Offset of the first character in the document's text, in code points.")
    end: int = Field(description="Offset behind the last character, in code points.")
    text: str = Field(description="The document's text from start to end.")
    page: int | None = Field(description="1-based page on which it starts; null without pages.")
    similarity: float | None = Field(description=f"{COSINE} Null in lexical search.")
    lexical: float | None = Field(description=f"{BM25} Null in dense and symmetric search.")


class HitResponse(ResponseBody):
    document_id: str
    title: str | None
    metadata: Metadata
    score: float = Field(
        description="What hits are ranked by: `fused` in hybrid search, `similarity` in dense and symmetric, "
        "`lexical` in lexical search. It never depends on top_k."
    )
    similarity: float | None = Field(
        description=f"{COSINE} Of the nearest passage (asymmetric) or of whole documents (symmetric). "
        "Null in lexical search."
    )
    lexical: float | None = Field(
        description=f"{BM25} Of the best passage. Null in dense and symmetric search."
    )
    fused: float | None = Field(
        description="Convex combination, 0 to 1, or reciprocal rank fusion, 0 to 0.033; comparable "
        "within one result only. Null unless hybrid."
    )
    passages: list[PassageHitResponse] = Field(description="Best first; empty in symmetric search.")


class QueryResponse(ResponseBody):
    n_tokens: int = Field(
        description="Tokens of the query, special tokens included, before any truncation; "
        "0 in lexical search, which does not encode it."
    )
    max_tokens: int = Field(description="Most tokens that the encoder takes at a time.")
    truncated: bool = Field(description="Whether the end of the query was cut off.")
    n_windows: int = Field(description="Pieces in which it was encoded.")


class TotalResponse(ResponseBody):
    n_documents: int = Field(description="Documents that are hits, on this page or not.")
    is_exact: bool = Field(description="False: `n_documents` is a lower bound.")


class SearchResponse(ResponseBody):
    hits: list[HitResponse] = Field(description="By descending score, equal ones by document id.")
    total: TotalResponse
    next_cursor: str | None = Field(
        description="Give it as `cursor` for the next page. Null on the last page, and behind the "
        f"first {MAX_REACH:,} hits, where paging ends."
    )
    is_exact: bool = Field(
        description="Whether exhaustive search would rank the same; false where an approximate index ranked."
    )
    facets: dict[str, FacetResponse] = Field(
        description="By field: how many documents that satisfy the filter, hits or not, hold each value."
    )
    query: QueryResponse
    generation: int = Field(description="Of the index that was searched.")
    notices: list[str] = Field(
        description="What was done otherwise than asked for; usually empty. Hybrid search ranks by meaning "
        "alone while the index of the words is damaged."
    )
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds per stage: encode, filter (if any), retrieve, fetch, and in total.",
        examples=[{"encode": 2.4, "retrieve": 1.1, "fetch": 0.6, "total": 4.2}],
    )

    @classmethod
    def of(cls, result: SearchResult, facets: Mapping[str, Facet], *, next_cursor: str | None) -> Self:
        return cls(
            hits=[HitResponse.model_validate(hit) for hit in result.hits],
            total=TotalResponse.model_validate(result.total),
            next_cursor=next_cursor,
            is_exact=result.is_exact,
            facets={name: FacetResponse.of(facet) for name, facet in facets.items()},
            query=QueryResponse(
                n_tokens=result.n_query_tokens,
                max_tokens=result.max_query_tokens,
                truncated=result.query_truncated,
                n_windows=result.n_query_windows,
            ),
            generation=result.generation,
            notices=list(result.notices),
            timings_ms=result.timings_ms,
        )
