"""/v1/collections/{collection}/files"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from app.api.bodies import StrictRoute, require_media_type
from app.api.jobs import ACCEPTED, PREFER, finished_or_accepted, submitted
from app.api.parameters import CollectionName
from app.api.problems import responses
from app.api.schemas.jobs import FinishedJobResponse
from app.api.state import parts
from app.domain import Job, JobInput, JobKind
from app.errors import InvalidInput

router = APIRouter(prefix="/v1/collections/{collection}/files", tags=["documents"], route_class=StrictRoute)

MULTIPART = "multipart/form-data"
FILES_BODY: dict[str, Any] = {
    "required": True,
    "content": {
        MULTIPART: {
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "files": {
                        "type": "array",
                        "items": {"type": "string", "format": "binary"},
                        "description": "One part per file, each with its file name.",
                    }
                },
            }
        }
    },
}


async def uploaded_files(request: Request) -> AsyncIterator[Sequence[UploadFile]]:
    """All file parts named `files`, in order; large ones lie on disk until the request is over."""
    require_media_type(request, MULTIPART)
    max_batch = parts(request).settings.max_batch
    form = await _complete_form(request, max_parts=max_batch)
    try:
        for name, value in form.multi_items():
            if name != "files":
                raise InvalidInput("is not a known part; files are sent as parts named files", where=(name,))
            if not isinstance(value, UploadFile):
                raise InvalidInput("is not a file: the part has no file name", where=(name,))
        yield [value for value in form.getlist("files") if isinstance(value, UploadFile)]
    finally:
        await form.close()


class _Parser(MultiPartParser):
    """Knows whether it has seen the border that ends a form; a form cut short would lose its last file."""

    is_complete = False

    def on_end(self) -> None:
        self.is_complete = True


async def _complete_form(request: Request, *, max_parts: int) -> FormData:
    parser = _Parser(request.headers, request.stream(), max_files=max_parts, max_fields=max_parts)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise HTTPException(400, error.message) from error
    if not parser.is_complete:
        await form.close()
        raise HTTPException(400, "the form is cut short: the border that ends it is missing")
    return form


@router.post(
    "",
    operation_id="post_files",
    summary="Read files into documents",
    status_code=202,
    responses={
        **responses(404, 409, 413, 415, 507),
        200: {
            "description": "Finished within `Prefer: wait`.",
            "model": FinishedJobResponse,
            "headers": {"Preference-Applied": {"schema": {"type": "string"}}},
        },
        202: ACCEPTED,
    },
    openapi_extra={"requestBody": FILES_BODY, "parameters": [PREFER]},
)
async def post_files(
    request: Request, name: CollectionName, files: Annotated[Sequence[UploadFile], Depends(uploaded_files)]
) -> Response:
    """Store files as a job and answer at once: txt, md, html, pdf, docx, pptx, xlsx, csv, jsonl, epub.

    The file name becomes the id of the document. A file that cannot be read (damaged, encrypted, of
    another kind) is `rejected` in its outcome, the others succeed.
    """
    service = parts(request)

    def submit() -> Job:
        return submitted(service, name, JobKind.FILES, _inputs(files))

    return await finished_or_accepted(service, await run_sync(submit), request)


def _inputs(files: Sequence[UploadFile]) -> Iterator[JobInput]:
    for ordinal, file in enumerate(files):
        yield JobInput(
            ordinal=ordinal, body=file.file.read(), name=file.filename, media_type=file.content_type
        )
