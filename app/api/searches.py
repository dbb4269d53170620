"""/v1/collections/{collection}/search"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.paging import cursor_behind, place_of
from app.api.parameters import CollectionName
from app.api.permits import search_permit
from app.api.problems import responses
from app.api.schemas.searches import (
    DEFAULT_RERANK,
    AsymmetricRequest,
    SearchRequest,
    SearchResponse,
    SymmetricRequest,
)
from app.api.state import Parts, parts
from app.domain import Facet, Fusion, Rerank, SearchResult
from app.filters import Filter, parse_filter
from app.services.paging import page_behind

router = APIRouter(
    prefix="/v1/collections/{collection}/search",
    tags=["search"],
    route_class=StrictRoute,
    dependencies=[Depends(search_permit)],
)

ASYMMETRIC_EXAMPLES: dict[str, Any] = {
    "question": {
        "summary": "A question",
        "value": {"query": "Why did Tesla leave Edison's company?", "top_k": 3},
    },
    "lexical": {
        "summary": "By words alone",
        "value": {"query": "rainforest deforestation", "mode": "lexical", "top_k": 3},
    },
    "filter": {
        "summary": "Among some documents, with counts of their metadata",
        "value": {
            "query": "How do leaves make sugar?",
            "top_k": 3,
            "filter": {"field": "article", "in": ["Oxygen", "Amazon rainforest"]},
            "facets": ["article"],
        },
    },
    "answers": {
        "summary": "With the answer in each hit, ranked anew within half a second",
        "value": {"query": "What is the capital of Poland?", "top_k": 3, "answers": True, "budget_ms": 500},
    },
    "words": {
        "summary": "A few words, one passage each",
        "value": {"query": "largest rainforest on earth", "top_k": 5, "passages_per_hit": 1},
    },
}
SYMMETRIC_EXAMPLES: dict[str, Any] = {
    "text": {
        "summary": "Documents like a text",
        "value": {"text": "Warsaw is the capital and the largest city of Poland.", "top_k": 3},
    },
    "document": {
        "summary": "More like this document",
        "value": {"document_id": "Nikola_Tesla/0", "top_k": 3},
    },
}


@router.post(
    "/asymmetric",
    operation_id="search_asymmetric",
    summary="Find passages that answer a query",
    response_description="Hits, best first.",
    response_model=SearchResponse,
    responses=responses(404, 409, 413, 415),
)
def search_asymmetric(
    request: Request,
    name: CollectionName,
    body: Annotated[AsymmetricRequest, Body(openapi_examples=ASYMMETRIC_EXAMPLES)],
) -> Response:
    """Compare a short query with the passages of all documents, by meaning (cosine of embeddings), by words
    (BM25), or by both fused, which is the default.

    A hit is a document, ranked by its best passage, with offsets into its text. Exactly
    min(top_k, documents) hits come back, of the documents that satisfy the filter and, in lexical mode, have
    a word of the query; a finished write is seen by the next search.

    Where a model reranks, it reads the query together with the best passage of each of the first candidates,
    before hits are cut to top_k. What ranks then is a combination of both stages, whose weights come with the
    model. `answers` adds the span of each hit that answers the query.
    """
    service, condition = parts(request), _condition(body)

    def search(top_k: int) -> SearchResult:
        return service.search.asymmetric(
            name,
            body.query,
            top_k=top_k,
            passages_per_hit=body.passages_per_hit,
            truncate=body.truncate,
            mode=body.mode,
            fusion=_fusion(service, name, body),
            condition=condition,
            rerank=_rerank(service, name, body),
            answers=body.answers,
            offsets=body.offsets,
        )

    return _answer(service, name, body, search, condition)


@router.post(
    "/symmetric",
    operation_id="search_symmetric",
    summary="Find documents like a text or a document",
    response_description="Hits, best first.",
    response_model=SearchResponse,
    responses=responses(404, 409, 413, 415),
)
def search_symmetric(
    request: Request,
    name: CollectionName,
    body: Annotated[SymmetricRequest, Body(openapi_examples=SYMMETRIC_EXAMPLES)],
) -> Response:
    """Compare whole texts of one kind: paraphrases, near-duplicates, "more like this".

    Give a text, or the id of a document of the collection, which is then not among its own hits.
    """
    service, condition = parts(request), _condition(body)

    def search(top_k: int) -> SearchResult:
        return service.search.symmetric(
            name, text=body.text, document_id=body.document_id, top_k=top_k, condition=condition
        )

    return _answer(service, name, body, search, condition)


def _answer(
    service: Parts,
    name: str,
    body: SearchRequest,
    search: Callable[[int], SearchResult],
    condition: Filter | None,
) -> Response:
    page = page_behind(place_of(name, body), search, size=body.top_k)
    service.metrics.count_search(page.result)
    service.traces.stages(page.result.timings_ms)
    facets = _facets(service, name, body, condition)
    return json_response(
        SearchResponse.of(page.result, facets, next_cursor=cursor_behind(page.next_place, name, body))
    )


def _fusion(service: Parts, name: str, body: AsymmetricRequest) -> Fusion | None:
    if body.fusion is None:
        return None
    return body.fusion.over(service.rows.collection(name).search.fusion)


def _rerank(service: Parts, name: str, body: AsymmetricRequest) -> Rerank | None:
    """As asked for; by default where there is a reranker for every kind of query."""
    is_wanted = service.reading.rerank_by_default if body.rerank is None else body.rerank
    if not is_wanted:
        return None
    candidates = body.candidates or service.rows.collection(name).search.candidates
    return Rerank(
        candidates=candidates or DEFAULT_RERANK.candidates,
        budget_ms=body.budget_ms,
        is_required=body.rerank is True,
    )


def _condition(body: SearchRequest) -> Filter | None:
    return None if body.filter is None else parse_filter(body.filter)


def _facets(service: Parts, name: str, body: SearchRequest, condition: Filter | None) -> Mapping[str, Facet]:
    if not body.facets:
        return {}
    collection = service.rows.collection(name)
    return service.rows.facets(collection.key, body.facets, condition=condition, limit=body.facet_limit)
