"""Requests made up from the interface description: no fault, no undocumented answer.

Bounded and with a fixed seed, so that a failure is the same everywhere. benchmarks/fuzz.py goes on longer.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.api.fuzzing import call_and_validate, fuzzed_service, schema

SCHEMA = schema(seed=1)
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
    with fuzzed_service(tmp_path_factory.mktemp("fuzz")) as url:
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
