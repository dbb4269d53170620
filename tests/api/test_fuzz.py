"""Requests made up from the interface description: no fault, no undocumented answer.

Bounded and with a fixed seed, so that a failure is the same everywhere.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from app.main import create_app
from app.settings import Settings
from tests.api.serving import serving
from tests.api.stand_up import settings_in, worker_of
from tests.reading_substitutes import overlap_models
from tests.substitutes import WordHashEmbedder
from tests.text_substitutes import without_texts

SCHEMA = schemathesis.openapi.from_dict(
    create_app(Settings()).openapi(),
    config=SchemathesisConfig.from_dict({"seed": 1, "generation": {"deterministic": True}}),
)


@schemathesis.serializer("application/x-ndjson")
def _as_one_line(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


BEYOND_SCHEMA: list[Any] = [positive_data_acceptance]
"""Not demanded: blank texts and made-up cursors fit the schema and are refused all the same."""
BOUNDED = settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    service = settings_in(tmp_path_factory.mktemp("fuzz"), wait_s=1, max_batch=50)
    app = create_app(
        service,
        load=lambda _: WordHashEmbedder(),
        load_reading=lambda _: overlap_models(),
        load_texts=without_texts,
    )
    with worker_of(service), serving(app) as url:
        yield url


@pytest.fixture
def url_with_demo(base_url: str) -> str:
    """Operations that delete the collection may have run before."""
    httpx.put(f"{base_url}/v1/collections/demo")
    return base_url


@SCHEMA.parametrize()
@BOUNDED
def test_any_request_gets_a_documented_answer(base_url: str, case: schemathesis.Case[Any]) -> None:
    call_and_validate(case, base_url)


@SCHEMA.include(path_regex="/v1/collections/{collection}/").parametrize()
@BOUNDED
def test_any_request_to_an_existing_collection_gets_a_documented_answer(
    url_with_demo: str, case: schemathesis.Case[Any]
) -> None:
    case.path_parameters["collection"] = "demo"
    call_and_validate(case, url_with_demo)


def call_and_validate(case: schemathesis.Case[Any], base_url: str) -> None:
    """As schemathesis does, but a refusal that says when to come again is no fault of the server."""
    response = case.call(base_url=base_url)
    if response.status_code == 503 and "retry-after" in response.headers:
        assert response.json()["type"].endswith("overloaded")
        return
    case.validate_response(response, excluded_checks=BEYOND_SCHEMA)
