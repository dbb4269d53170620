"""Requests made up from the interface description, and the service that answers them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance
from schemathesis.specs.openapi.schemas import OpenApiSchema

from app.main import create_app
from app.settings import Settings
from tests.api.serving import serving
from tests.api.stand_up import settings_in, worker_of
from tests.reading_substitutes import overlap_models
from tests.substitutes import WordHashEmbedder
from tests.text_substitutes import without_texts

BEYOND_SCHEMA: list[Any] = [positive_data_acceptance]
"""Not demanded: blank texts and made-up cursors fit the schema and are refused all the same."""


def schema(*, seed: int) -> OpenApiSchema:
    """The same requests for the same seed."""
    return schemathesis.openapi.from_dict(
        create_app(Settings()).openapi(),
        config=SchemathesisConfig.from_dict({"seed": seed, "generation": {"deterministic": True}}),
    )


@schemathesis.serializer("application/x-ndjson")
def _as_one_line(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@contextmanager
def fuzzed_service(folder: Path) -> Iterator[str]:
    """Its base URL."""
    settings = settings_in(folder, wait_s=1, max_batch=50)
    app = create_app(
        settings,
        load=lambda _: WordHashEmbedder(),
        load_reading=lambda _: overlap_models(),
        load_texts=without_texts,
    )
    with worker_of(settings), serving(app) as url:
        yield url


def call_and_validate(case: schemathesis.Case[Any], base_url: str) -> int:
    """As schemathesis does, but a refusal that says when to come again is no fault of the server.

    Returns the status.
    """
    response = case.call(base_url=base_url)
    if response.status_code == 503 and "retry-after" in response.headers:
        assert response.json()["type"].endswith("overloaded")
    else:
        case.validate_response(response, excluded_checks=BEYOND_SCHEMA)
    return response.status_code
