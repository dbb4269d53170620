"""/v1/aliases"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from app.api.access import reaches
from app.api.bodies import StrictRoute, json_response
from app.api.parameters import AliasName
from app.api.problems import responses
from app.api.schemas.aliases import AliasesResponse, AliasRequest, AliasResponse
from app.api.state import parts
from app.errors import AliasNotFound

router = APIRouter(prefix="/v1/aliases", tags=["collections"], route_class=StrictRoute)

PUT_EXAMPLES: dict[str, Any] = {
    "demo": {"summary": "Lead to the demo corpus", "value": {"collection": "demo"}},
}


@router.get(
    "",
    operation_id="list_aliases",
    summary="List aliases",
    response_description="All aliases.",
    response_model=AliasesResponse,
    responses=responses(),
)
def list_aliases(request: Request) -> Response:
    """All aliases of collections that the key reaches, by name."""
    found = [each for each in parts(request).rows.aliases() if reaches(request, each.collection)]
    return json_response(AliasesResponse(aliases=[AliasResponse.model_validate(each) for each in found]))


@router.put(
    "/{alias}",
    operation_id="put_alias",
    summary="Point an alias at a collection",
    response_model=AliasResponse,
    responses={
        **responses(404, 409, 413, 415, 507),
        200: {"description": "It leads to this collection now, or did before."},
        201: {"description": "Created.", "model": AliasResponse},
    },
)
def put_alias(
    request: Request, name: AliasName, body: Annotated[AliasRequest, Body(openapi_examples=PUT_EXAMPLES)]
) -> Response:
    """Make another name for a collection, or lead an existing one elsewhere, in one step.

    Every path with the name of a collection takes an alias instead, from the next request on; only creating
    and deleting a collection need its own name. What was accepted before, a job say, stays with the
    collection that it was accepted for.
    """
    alias, was_created = parts(request).rows.put_alias(name, body.collection)
    return json_response(AliasResponse.model_validate(alias), 201 if was_created else 200)


@router.get(
    "/{alias}",
    operation_id="get_alias",
    summary="Show an alias",
    response_description="The alias.",
    response_model=AliasResponse,
    responses=responses(404),
)
def get_alias(request: Request, name: AliasName) -> Response:
    """Where it leads."""
    alias = parts(request).rows.alias(name)
    if not reaches(request, alias.collection):
        raise AliasNotFound(f"there is no alias {name!r}")
    return json_response(AliasResponse.model_validate(alias))


@router.delete(
    "/{alias}",
    operation_id="delete_alias",
    summary="Delete an alias",
    response_description="Deleted; the collection stays.",
    status_code=204,
    response_class=Response,
    responses=responses(404, 507),
)
def delete_alias(request: Request, name: AliasName) -> Response:
    """Delete the name. The collection and its documents stay."""
    parts(request).rows.drop_alias(name)
    return Response(status_code=204)
