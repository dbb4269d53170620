"""Two bi-encoders in one service: a collection goes from one to the other while it is searched."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.engine.embedders import load_embedders
from app.errors import ModelUnavailable
from app.settings import Settings
from tests.api.stand_up import SECOND, assert_problem, client_of, fill, settings_in, worker_of
from tests.api.test_rebuilds import DEMO, STANDBY, finished, searching
from tests.substitutes import WordHashEmbedder


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """With a worker and the collection `demo`, made by the first."""
    settings = settings_in(tmp_path, second_embedder=SECOND)
    with worker_of(settings), client_of(settings) as client:
        fill(client)
        client.put(f"{DEMO}/documents/fourth", json={"text": "A castle at the river."}).raise_for_status()
        yield client


def test_both_are_shown_and_ready(client: TestClient) -> None:
    models = client.get("/v1/models").json()["models"]
    assert [(each["role"], each["name"]) for each in models] == [
        ("embedder", "word-hash"),
        ("second_embedder", SECOND),
    ]
    assert client.get("/readyz").status_code == 200
    assert 'bifocal_model_info{name="word-hash-too",role="second_embedder"' in client.get("/metrics").text


def test_a_collection_goes_to_the_second_and_back_while_searches_go_on(client: TestClient) -> None:
    with searching(client) as faults:
        assert (
            finished(client, client.post(f"{DEMO}/reindex", json={"model": SECOND}))["state"] == "succeeded"
        )
        shown = client.get(DEMO).json()
        assert (shown["model"], shown["fingerprint"]) == (SECOND, "word-hash-2")
        assert client.get(STANDBY).json()["model"] == "word-hash"
        symmetric = client.post(f"{DEMO}/search/symmetric", json={"text": "The castle at the river."})
        assert symmetric.json()["hits"][0]["document_id"] == "fourth"
        assert finished(client, client.post(f"{DEMO}/rollback"))["state"] == "succeeded"
    assert faults == []
    assert client.get(DEMO).json()["model"] == "word-hash"


def test_what_the_second_made_is_written_to_and_evaluated_with_it(client: TestClient) -> None:
    finished(client, client.post(f"{DEMO}/reindex", json={"model": SECOND}))
    assert client.put(f"{DEMO}/documents/new", json={"text": "A lighthouse."}).status_code == 201
    found = client.post(f"{DEMO}/search/asymmetric", json={"query": "lighthouse", "mode": "dense"}).json()
    assert found["hits"][0]["document_id"] == "new"
    judged = {"queries": [{"id": "1", "text": "lighthouse", "judgements": {"new": 1}}]}
    evaluation = client.post(f"{DEMO}/evaluations", json=judged).json()
    assert finished_evaluation(client, evaluation["id"]) == "succeeded"


def finished_evaluation(client: TestClient, job_id: str) -> str:
    while (job := client.get(f"/v1/jobs/{job_id}").json())["finished_at"] is None:
        time.sleep(0.02)
    state: str = job["state"]
    return state


def test_new_collections_are_made_by_the_first(client: TestClient) -> None:
    assert client.put("/v1/collections/notes").json()["model"] == "word-hash"


def test_a_model_that_does_not_run_is_refused_with_those_that_do(client: TestClient) -> None:
    problem = assert_problem(
        client.post(f"{DEMO}/reindex", json={"model": "elsewhere"}), 409, "model-not-configured"
    )
    assert "'word-hash' and 'word-hash-too'" in problem["detail"]
    assert_problem(client.get(STANDBY), 404, "collection-not-found")


def test_without_the_second_its_collections_are_refused_by_name(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, second_embedder=SECOND)
    with worker_of(settings), client_of(settings) as client:
        fill(client)
        finished(client, client.post(f"{DEMO}/reindex", json={"model": SECOND}))
    with worker_of(settings_in(tmp_path)), client_of(settings_in(tmp_path)) as client:
        body = {"query": "river"}
        problem = assert_problem(
            client.post(f"{DEMO}/search/asymmetric", json=body), 409, "fingerprint-mismatch"
        )
        assert SECOND in problem["detail"]
        words = client.post(f"{DEMO}/search/asymmetric", json={**body, "mode": "lexical"})
        assert len(words.json()["hits"]) == 2
        assert finished(client, client.post(f"{DEMO}/rollback"))["state"] == "succeeded"
        assert len(client.post(f"{DEMO}/search/asymmetric", json=body).json()["hits"]) == 3


def test_where_the_second_cannot_be_loaded_the_first_is_closed() -> None:
    closed: list[str] = []

    class Closing(WordHashEmbedder):
        def close(self) -> None:
            closed.append(self.description.name)

    def load(settings: Settings) -> WordHashEmbedder:
        if settings.embedder == "missing":
            raise ModelUnavailable("no such model")
        return Closing()

    with pytest.raises(ModelUnavailable):
        load_embedders(Settings(second_embedder="missing"), load)
    assert closed == ["word-hash"]
