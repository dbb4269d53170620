"""/v1/collections"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from app.api.access import reaches
from app.api.bodies import StrictRoute, json_response
from app.api.parameters import CollectionName
from app.api.problems import responses
from app.api.schemas.collections import (
    CollectionDetailsResponse,
    CollectionRequest,
    CollectionResponse,
    CollectionsResponse,
    CollectionStatsResponse,
    IndexStatsResponse,
    SearchSettingsRequest,
)
from app.api.state import Parts, parts
from app.domain import Collection, View

router = APIRouter(prefix="/v1/collections", tags=["collections"], route_class=StrictRoute)

VIEWS: tuple[View, ...] = ("passages", "documents")
PUT_EXAMPLES: dict[str, Any] = {
    "default": {"summary": "Default settings", "value": {}},
    "splitter": {
        "summary": "The same, spelled out",
        "value": {"splitter": {"max_tokens": 256, "overlap_tokens": 32}},
    },
}
SEARCH_EXAMPLES: dict[str, Any] = {
    "tuned": {"summary": "More weight on words", "value": {"fusion": {"dense_weight": 0.7}}},
    "default": {"summary": "Back to the defaults", "value": {}},
}


@router.get(
    "",
    operation_id="list_collections",
    summary="List collections",
    response_description="All collections.",
    response_model=CollectionsResponse,
    responses=responses(),
)
def list_collections(request: Request) -> Response:
    """All collections that the key reaches, by name, without their statistics."""
    found = [each for each in parts(request).rows.collections() if reaches(request, each.name)]
    return json_response(CollectionsResponse(collections=[CollectionResponse.of(each) for each in found]))


@router.put(
    "/{collection}",
    operation_id="put_collection",
    summary="Create a collection",
    response_model=CollectionDetailsResponse,
    responses={
        **responses(409, 413, 415, 507),
        200: {"description": "It exists with these settings already; nothing was changed."},
        201: {"description": "Created.", "model": CollectionDetailsResponse},
    },
)
def put_collection(
    request: Request,
    name: CollectionName,
    body: Annotated[CollectionRequest | None, Body(openapi_examples=PUT_EXAMPLES)] = None,
) -> Response:
    """Make an empty collection for the model that runs.

    Repeating it with the same settings changes nothing. Those of the splitter cannot be changed later: others
    for an existing name are refused with 409.
    """
    service = parts(request)
    model = service.embedder.description
    settings = (body or CollectionRequest()).settings()
    collection, was_created = service.rows.create_collection(
        name, settings, fingerprint=model.fingerprint, model=model.name
    )
    return json_response(_details(service, collection), 201 if was_created else 200)


@router.get(
    "/{collection}",
    operation_id="get_collection",
    summary="Show a collection",
    response_description="The collection.",
    response_model=CollectionDetailsResponse,
    responses=responses(404),
)
def get_collection(request: Request, name: CollectionName) -> Response:
    """Settings, statistics of its documents, and the state of its index."""
    service = parts(request)
    return json_response(_details(service, service.rows.collection(name)))


@router.put(
    "/{collection}/search-settings",
    operation_id="put_search_settings",
    summary="Change how a collection is searched by default",
    response_description="The collection with its new settings.",
    response_model=CollectionResponse,
    responses=responses(404, 409, 413, 415, 507),
)
def put_search_settings(
    request: Request,
    name: CollectionName,
    body: Annotated[SearchSettingsRequest, Body(openapi_examples=SEARCH_EXAMPLES)],
) -> Response:
    """Replace what searches take where the request does not say, from the next search on.

    What is left out gets its default, so `{}` brings all defaults back. `bifocal evaluate` with `--tune` and
    `--apply` finds and writes what suits your own questions.
    """
    changed = parts(request).rows.set_search_settings(name, body.settings())
    return json_response(CollectionResponse.of(changed))


@router.delete(
    "/{collection}",
    operation_id="delete_collection",
    summary="Delete a collection",
    response_description="Deleted.",
    status_code=204,
    response_class=Response,
    responses=responses(404, 409, 507),
)
def delete_collection(request: Request, name: CollectionName) -> Response:
    """Delete it with all of its documents and jobs. The name can be used again at once.

    409 while an alias leads to it.
    """
    parts(request).rows.drop_collection(name)
    return Response(status_code=204)


def _details(service: Parts, collection: Collection) -> CollectionDetailsResponse:
    shown = CollectionResponse.of(collection)
    return CollectionDetailsResponse(
        **dict(shown),
        stats=CollectionStatsResponse.model_validate(service.rows.collection_stats(collection.key)),
        index={
            view: IndexStatsResponse.model_validate(service.index.stats(collection, view)) for view in VIEWS
        },
    )
