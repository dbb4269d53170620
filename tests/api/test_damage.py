"""A store of which a part is damaged: that part answers 503, all else works."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.stand_up import assert_problem, client_of, fill, settings_in, worker_of


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """Two collections; the text about the bridge in `demo` is damaged."""
    settings = settings_in(tmp_path)
    with worker_of(settings), client_of(settings) as client:
        fill(client, "demo")
        client.put("/v1/collections/other").raise_for_status()
        written = client.put("/v1/collections/other/documents/a", json={"text": "Rivers of another land."})
        assert written.status_code == 201
    path = tmp_path / "bifocal.db"
    content = path.read_bytes()
    assert b"The bridge crosses" in content
    path.write_bytes(content.replace(b"The bridge crosses", b"The bridge \xffrosses"))
    with client_of(settings) as client:
        yield client


def test_a_damaged_document_is_503_that_says_so(client: TestClient) -> None:
    assert_problem(client.get("/v1/collections/demo/documents/bridge"), 503, "storage-damaged")


def test_other_documents_and_collections_work_beside_it(client: TestClient) -> None:
    assert client.get("/v1/collections/demo/documents/castle").status_code == 200
    answer = client.post("/v1/collections/other/search/asymmetric", json={"query": "rivers"})
    assert [hit["document_id"] for hit in answer.json()["hits"]] == ["a"]
