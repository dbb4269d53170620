"""/v1/doctor: is the store what it should be?"""

from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.permits import examination_permit
from app.api.problems import responses
from app.api.schemas.doctor import DoctorResponse
from app.api.state import parts
from app.services.doctor.examining import examine
from app.services.doctor.patient import Thoroughness

router = APIRouter(tags=["service"], route_class=StrictRoute)

MAX_SAMPLE = 64
SECONDS = 10.0
CHECK_SECONDS = 2.0
MAX_DIGEST_BYTES = 256 * 2**20
"""A second or two to read and digest."""
MAX_ROWS = 5_000


@router.get(
    "/v1/doctor",
    operation_id="examine_store",
    summary="Examine the store",
    response_description="What was found.",
    response_model=DoctorResponse,
    responses=responses(),
    dependencies=[Depends(examination_permit)],
)
async def examine_store(
    request: Request,
    sample: Annotated[
        int,
        Query(ge=0, le=MAX_SAMPLE, description="Passages to encode anew and compare with what is stored."),
    ] = 8,
) -> Response:
    """Checksums, counts, texts and vectors, without changing anything, in about ten seconds at most.

    Of a large store not all is looked at; `bifocal doctor` does. 200 whatever is found; one at a time."""
    service = parts(request)
    thoroughness = Thoroughness(
        sample=sample,
        seconds=SECONDS,
        check_seconds=CHECK_SECONDS,
        max_digest_bytes=MAX_DIGEST_BYTES,
        max_rows=MAX_ROWS,
    )
    checks = await run_sync(
        examine,
        service.settings,
        service.rows,
        lambda: service.embedder,
        thoroughness,
        limiter=CapacityLimiter(1),
    )
    return json_response(DoctorResponse.of(checks))
