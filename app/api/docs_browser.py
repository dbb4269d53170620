"""/docs and /redoc without internet: pages and scripts come from the service itself.

Every link is relative to its page, so they work under any prefix, whether a proxy strips it or not.
"""

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response

router = APIRouter(include_in_schema=False)

MEDIA_TYPES = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "redoc.standalone.js": "text/javascript",
    "favicon.png": "image/png",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bifocal</title>
<link rel="icon" href="docs-assets/favicon.png">
{head}
</head>
<body>
{body}
</body>
</html>
"""
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "worker-src 'self' blob:",
        "frame-ancestors 'none'",
    )
)
"""The browser itself sees to it that nothing is fetched from elsewhere."""
SWAGGER = PAGE.format(
    head='<link rel="stylesheet" href="docs-assets/swagger-ui.css">',
    body="""<div id="swagger"></div>
<script src="docs-assets/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger",
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
})
</script>""",
)
REDOC = PAGE.format(
    head="<style>body { margin: 0 }</style>",
    body="""<div id="redoc"></div>
<script src="docs-assets/redoc.standalone.js"></script>
<script>
Redoc.init("openapi.json", { disableGoogleFont: true, hideLogo: true }, document.getElementById("redoc"))
</script>""",
)


@router.get("/docs")
async def show_swagger() -> Response:
    return HTMLResponse(SWAGGER, headers={"Content-Security-Policy": POLICY})


@router.get("/redoc")
async def show_redoc() -> Response:
    return HTMLResponse(REDOC, headers={"Content-Security-Policy": POLICY})


@router.get("/docs-assets/{name}")
def get_asset(name: str) -> Response:
    if name not in MEDIA_TYPES:
        raise HTTPException(404)
    return FileResponse(
        _assets() / name, media_type=MEDIA_TYPES[name], headers={"Cache-Control": "max-age=3600"}
    )


def _assets() -> Path:
    """Of Swagger UI and Redoc, as the package `fastapi-offline` carries them; none of its code is used."""
    spec = find_spec("fastapi_offline")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise HTTPException(
            503,
            "the package fastapi-offline is not installed; run `pip install fastapi-offline`",
        )
    return Path(places[0]) / "static"
