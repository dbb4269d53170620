"""/v1/collections/{collection}/reindex and /rollback"""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from app.api.access import reaches
from app.api.bodies import StrictRoute
from app.api.jobs import ACCEPTED, accepted
from app.api.parameters import CollectionName
from app.api.problems import responses
from app.api.schemas.rebuilds import ReindexRequest
from app.api.state import parts
from app.engine.embedders import by_name, named
from app.errors import Forbidden
from app.services.reindexing import begin_reindex

router = APIRouter(prefix="/v1/collections/{collection}", tags=["collections"], route_class=StrictRoute)

REINDEX_EXAMPLES: dict[str, Any] = {
    "shorter": {
        "summary": "Shorter passages",
        "value": {"splitter": {"max_tokens": 128, "overlap_tokens": 16}},
    },
}


@router.post(
    "/reindex",
    operation_id="reindex_collection",
    summary="Build a collection anew beside the one in use",
    status_code=202,
    responses={**responses(404, 409, 413, 415, 507), 202: ACCEPTED},
)
def reindex_collection(
    request: Request,
    name: CollectionName,
    body: Annotated[ReindexRequest | None, Body(openapi_examples=REINDEX_EXAMPLES)] = None,
) -> Response:
    """Split, encode and index all documents again, with other settings or by another model.

    Searches and writes go on meanwhile with the collection as it was. The job copies its documents into a
    standby, follows what is written, and then lets both change their names in one step. The former one stays
    as the standby until it is deleted; POST .../rollback goes back to it. A job that fails or is cancelled
    leaves the collection as it was.
    """
    service, wanted = parts(request), body or ReindexRequest()
    if wanted.standby is not None and not reaches(request, wanted.standby):
        raise Forbidden("the key is restricted to other collections than the standby would be")
    model = service.embedder.description
    if wanted.model is not None:
        model = named(wanted.model, by_name(service.embedders))
    job = begin_reindex(
        service.rows,
        name,
        wanted.changes(),
        fingerprint=model.fingerprint,
        model=model.name,
        standby=wanted.standby,
    )
    return accepted(job, request)


@router.post(
    "/rollback",
    operation_id="roll_back_collection",
    summary="Go back to what a collection was before it was re-indexed",
    status_code=202,
    responses={**responses(404, 409, 507), 202: ACCEPTED},
)
def roll_back_collection(request: Request, name: CollectionName) -> Response:
    """Let the collection and its standby change their names again.

    What was written since the switch is carried over first, so the answer is a job; it takes as long as these
    documents take to encode. Repeating it afterwards goes forward again.
    """
    return accepted(parts(request).rows.begin_rollback(name), request)
