"""GET /v1/doctor."""

import itertools
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from app.keys import Scope, new_key
from app.storage.sqlite import SqliteRows
from tests.api.stand_up import assert_problem, client_of, fill, settings_in, worker_of
from tests.indexer.stand_ins import wait_until

WAIT = {"Prefer": "wait=10"}


def checks(client: TestClient, **parameters: int) -> dict[str, Any]:
    """By name."""
    answer = client.get("/v1/doctor", params=parameters)
    assert answer.status_code == 200, answer.text
    return {check["name"]: check for check in answer.json()["checks"]}


def test_a_healthy_service_with_its_worker_has_no_faults(client: TestClient) -> None:
    answer = client.get("/v1/doctor").json()
    assert answer["status"] == "ok", answer
    assert {check["status"] for check in answer["checks"]} == {"ok"}
    assert all(check["is_complete"] for check in answer["checks"])


def test_faults_are_named_with_place_and_remedy(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with worker_of(settings), client_of(settings) as client:
        fill(client)
        with closing(sqlite3.connect(tmp_path / "bifocal.db")) as connection, connection:
            connection.execute("UPDATE collections SET n_documents = 99")
        answer = client.get("/v1/doctor").json()
        assert answer["status"] == "problem"
        [fault] = next(check for check in answer["checks"] if check["name"] == "counters")["faults"]
        assert fault == {
            "status": "problem",
            "what": "n_documents is 99 and should be 3",
            "where": "collection demo",
            "repair": "count documents and passages anew",
        }


def test_that_no_worker_runs_is_a_warning(idle_client: TestClient) -> None:
    assert idle_client.get("/v1/doctor").json()["status"] == "warning"
    assert checks(idle_client)["worker"]["status"] == "warning"


def test_the_sample_is_bounded(client: TestClient) -> None:
    assert "up to 64 passages" in checks(client, sample=64)["encoding"]["looked_at"]
    assert_problem(client.get("/v1/doctor", params={"sample": 65}), 422, "invalid-request")


def test_what_is_being_written_is_never_taken_for_a_fault(tmp_path: Path) -> None:
    """Documents come, change and go, and bases follow each other while the store is examined."""
    settings = settings_in(tmp_path, compact_tail=20)
    with worker_of(settings), client_of(settings) as client:
        fill(client)
        end = threading.Event()

        def write() -> None:
            for i in itertools.count():
                if end.is_set():
                    return
                documents = [{"id": f"d{j}", "text": f"Text {i} of river {j}."} for j in range(40)]
                client.post("/v1/collections/demo/documents", json={"documents": documents}, headers=WAIT)
                client.delete(f"/v1/collections/demo/documents/d{i % 40}", headers=WAIT)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with closing(SqliteRows(tmp_path / "bifocal.db")) as rows:
                wait_until(lambda: is_well(client) and n_bases(rows) > 2, timeout_s=60)
        finally:
            end.set()
            writer.join()


def is_well(client: TestClient) -> bool:
    answer = client.get("/v1/doctor").json()
    assert answer["status"] == "ok", answer
    return True


def n_bases(rows: SqliteRows) -> int:
    """Published so far."""
    generation = rows.generation(rows.collection("demo").key, "passages")
    return 0 if generation is None else generation.number


def test_it_is_for_administrators(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with client_of(settings) as client:
        for scope, status in ((Scope.WRITE, 403), (Scope.ADMIN, 200)):
            stored, secret = new_key("someone", scopes=[scope], collections=None)
            with closing(SqliteRows(tmp_path / "bifocal.db")) as rows:
                rows.add_key(stored)
            answer = client.get("/v1/doctor", headers={"X-API-Key": secret})
            assert answer.status_code == status
