"""Queries and hits."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.api.schemas.answers import END, MAX_CANDIDATES, START, AnswerResponse, OffsetsCounted
from app.api.schemas.collections import (
    DENSE_WEIGHT,
    FUSION_DEPTH,
    FUSION_METHOD,
    MAX_DEPTH,
    MIN_DEPTH,
)
from app.api.schemas.documents import Metadata
from app.api.schemas.filters import FacetLimit, FacetNames, FacetResponse, FilterJson
from app.domain import Facet, Fusion, Hit, Mode, PassageHit, Rerank, Reranking, SearchResult
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
LOGIT = "Raw logit of relevance, unbounded; greater is more relevant. Comparable within one model."
DEFAULT_RERANK = Rerank()
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
    rerank: bool | None = Field(
        None,
        description="Whether a model that reads query and passage together ranks the best hits anew. Null: "
        "if a model was chosen for it by a setting, and takes the whole query; the one that ships waits to "
        "be asked, because it helps questions more than queries of other kinds.",
    )
    candidates: int | None = Field(
        None,
        ge=1,
        le=MAX_CANDIDATES,
        description="Documents that are ranked anew, each by its best passage, however small top_k is. Null: "
        f"as in the collection's search settings, else {DEFAULT_RERANK.candidates}.",
    )
    budget_ms: float | None = Field(
        None,
        ge=0,
        le=600_000,
        description="Milliseconds of the whole search after which nothing more is ranked anew; `reranking` "
        "tells how far it came. Loading a model for its first use does not count. Null: no limit.",
    )
    answers: bool = Field(False, description="Whether to find the answer in each hit. 409 if no model reads.")
    offsets: OffsetsCounted = "code_points"
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
    start: int = Field(description=START)
    end: int = Field(description=END)
    text: str = Field(description="The document's text from start to end.")
    page: int | None = Field(description="1-based page on which it starts; null without pages.")
    similarity: float | None = Field(description=f"{COSINE} Null in lexical search.")
    lexical: float | None = Field(description=f"{BM25} Null in dense and symmetric search.")
    fused: float | None = Field(description="As of hits, among passages. Null unless hybrid.")
    rerank: float | None = Field(description=f"{LOGIT} Null where the reranker did not look.")

    @classmethod
    def of(cls, passage: PassageHit) -> Self:
        place = passage.utf16 or passage
        shown = {field: getattr(passage, field) for field in cls.model_fields}
        return cls(**{**shown, "start": place.start, "end": place.end})


class HitResponse(ResponseBody):
    document_id: str
    title: str | None
    metadata: Metadata
    score: float = Field(
        description="What hits are ranked by: `fused` in hybrid search, `similarity` in dense and symmetric, "
        "`lexical` in lexical search; in a reranked search, the combination of that with `rerank`, of which "
        "the order alone has a meaning. It never depends on top_k."
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
    rerank: float | None = Field(
        description=f"{LOGIT} Of the most relevant passage; null where the reranker did not look."
    )
    relevance: float | None = Field(
        description="`rerank` as a probability, 0 to 1, for display; null where the model's scores are none."
    )
    passages: list[PassageHitResponse] = Field(description="Best first; empty in symmetric search.")
    answer: AnswerResponse | None = Field(
        description="Best answer in the hit, likely or not: see its score. Null unless asked for, or where "
        "nothing was read."
    )

    @classmethod
    def of(cls, hit: Hit) -> "HitResponse":
        shown = {
            field: getattr(hit, field) for field in cls.model_fields if field not in {"answer", "passages"}
        }
        answer = None if hit.answer is None else AnswerResponse.of_answer(hit.answer)
        passages = [PassageHitResponse.of(passage) for passage in hit.passages]
        return HitResponse.model_validate({**shown, "passages": passages, "answer": answer})


class QueryResponse(ResponseBody):
    n_tokens: int = Field(
        description="Tokens of the query, special tokens included, before any truncation; "
        "0 in lexical search, which does not encode it."
    )
    max_tokens: int = Field(description="Most tokens that the encoder takes at a time.")
    truncated: bool = Field(description="Whether the end of the query was cut off.")
    n_windows: int = Field(description="Pieces in which it was encoded.")


class RerankingResponse(ResponseBody):
    model: str
    n_candidates: int = Field(description="Passages that were to be ranked anew.")
    n_reranked: int = Field(description="Passages that were; fewer where the budget was used up.")
    n_truncated: int = Field(description="Passages so long that their end was not read.")
    n_query_tokens: int = Field(description="Tokens of the query, special tokens not included.")
    max_query_tokens: int = Field(description="Most tokens of a query that the model reads beside a passage.")
    query_truncated: bool = Field(description="Whether it read only the beginning of the query.")

    @classmethod
    def of(cls, reranking: Reranking | None) -> "RerankingResponse | None":
        if reranking is None:
            return None
        truncated = reranking.n_query_tokens > reranking.max_query_tokens
        return RerankingResponse(**dataclasses.asdict(reranking), query_truncated=truncated)


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
    reranking: RerankingResponse | None = Field(description="Null in a search that was not reranked.")
    generation: int = Field(description="Of the index that was searched.")
    notices: list[str] = Field(
        description="What was done otherwise than asked for; usually empty. Hybrid search ranks by meaning "
        "alone while the index of the words is damaged."
    )
    timings_ms: Mapping[str, float] = Field(
        description="Milliseconds per stage: encode, filter (if any), retrieve, fetch, load (of a model that "
        "was not used before), rerank and read (if any), and in total.",
        examples=[{"encode": 2.4, "retrieve": 1.1, "fetch": 0.6, "total": 4.2}],
    )

    @classmethod
    def of(cls, result: SearchResult, facets: Mapping[str, Facet], *, next_cursor: str | None) -> Self:
        return cls(
            hits=[HitResponse.of(hit) for hit in result.hits],
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
            reranking=RerankingResponse.of(result.reranking),
            generation=result.generation,
            notices=list(result.notices),
            timings_ms=result.timings_ms,
        )
