from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from tests.api.stand_up import client_of, fill, settings_in, worker_of


@pytest.fixture(scope="session")
def _shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return settings_in(tmp_path_factory.mktemp("api"), max_body_bytes=200_000, max_batch=50)


@pytest.fixture(scope="session")
def _shared_client(_shared_settings: Settings) -> Iterator[TestClient]:
    with worker_of(_shared_settings), client_of(_shared_settings) as client:
        yield client


@pytest.fixture
def client(_shared_client: TestClient) -> TestClient:
    """A running service and worker; the collection `demo` holds three documents, and no other exists."""
    for alias in _shared_client.get("/v1/aliases").json()["aliases"]:
        _shared_client.delete(f"/v1/aliases/{alias['name']}")
    for collection in _shared_client.get("/v1/collections").json()["collections"]:
        if collection["standby_of"] is None:  # which goes with its collection
            _shared_client.delete(f"/v1/collections/{collection['name']}")
    fill(_shared_client)
    return _shared_client


@pytest.fixture
def idle_client(tmp_path: Path) -> Iterator[TestClient]:
    """A service without a worker, with an empty collection `demo`: jobs stay queued."""
    with client_of(settings_in(tmp_path, wait_s=0.05)) as client:
        assert client.put("/v1/collections/demo").status_code == 201
        yield client
