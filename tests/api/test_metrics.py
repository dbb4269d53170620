"""/metrics"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from app.api.metrics import MULTIPROCESS_FOLDER, Metrics
from app.api.store_metrics import StoreCollector
from app.engine.activity import Activity
from app.engine.batching import BatchingOwner
from app.keys import Scope, new_key
from app.storage.sqlite import SqliteRows
from tests.api.stand_up import assert_problem, client_of, settings_in
from tests.project.repository import ROOT

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def samples_of(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def samples(client: TestClient) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples_of(answer.text)


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def grown(before: Samples, after: Samples, name: str, **labels: str) -> float:
    return value(after, name, **labels) - value(before, name, **labels)


def search(client: TestClient) -> None:
    client.post("/v1/collections/demo/search/asymmetric", json={"query": "river"}).raise_for_status()


def test_requests_are_counted_by_operation_and_status(client: TestClient) -> None:
    before = samples(client)
    search(client)
    client.get("/v1/collections/demo/documents/nothing")
    client.get("/v1/collections/demo/documents/castle")
    client.get("/nothing")
    after = samples(client)
    name = "bifocal_requests_total"
    assert grown(before, after, name, operation="search_asymmetric", status="200") == 1
    assert grown(before, after, name, operation="get_document", status="404") == 1
    assert grown(before, after, name, operation="get_document", status="200") == 1
    assert grown(before, after, name, operation="other", status="404") == 1
    assert grown(before, after, "bifocal_request_seconds_count", operation="get_document") == 2


def test_ids_and_names_in_paths_make_no_series(client: TestClient) -> None:
    client.get("/v1/collections/demo/documents/needle-1")
    client.get("/needle-2")
    assert "needle" not in client.get("/metrics").text


def test_stages_of_searches_are_timed(client: TestClient) -> None:
    before = samples(client)
    search(client)
    after = samples(client)
    for stage in ("encode", "retrieve", "fetch", "total"):
        assert grown(before, after, "bifocal_search_stage_seconds_count", stage=stage) == 1


def test_jobs_documents_and_indexes_are_as_the_store_says(client: TestClient) -> None:
    found = samples(client)
    assert value(found, "bifocal_documents", collection="demo") == 3
    assert value(found, "bifocal_passages", collection="demo") == 3
    assert value(found, "bifocal_passage_tokens", collection="demo") > 10
    assert value(found, "bifocal_jobs", state="succeeded") >= 1
    assert value(found, "bifocal_jobs", state="queued") == 0
    assert ("bifocal_index_generation", frozenset({("collection", "demo"), ("view", "passages")})) in found
    assert value(found, "bifocal_index_tail_vectors", collection="demo", view="passages") == 3
    assert value(found, "bifocal_worker_up") == value(found, "bifocal_store_up") == 1
    assert value(found, "process_resident_memory_bytes") > 1e6


def test_without_a_worker_that_is_told(idle_client: TestClient) -> None:
    assert value(samples(idle_client), "bifocal_worker_up") == 0


def test_of_a_store_that_cannot_be_read_only_that_is_told(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path)) as client:
        service = client.app_state["parts"]
        service.rows.close()
        found = {family.name: family.samples for family in StoreCollector(service).collect()}
    assert found["bifocal_store_up"][0].value == 0
    assert "bifocal_jobs" not in found


def test_what_models_did_is_counted_once_however_often_it_is_looked_at() -> None:
    owner: BatchingOwner[str, int] = BatchingOwner(
        lambda batch: [len(s) for s in batch], n_lanes=1, max_batch_tokens=64, max_queue=8
    )
    metrics = Metrics()
    metrics.activities = lambda: {"embedder": owner.activity}
    owner.encode(["abc", "de"])
    for _ in range(3):
        metrics.look()
    owner.encode(["f"])
    metrics.look()
    owner.close()
    found = samples_of(metrics.exposed().decode())
    assert value(found, "bifocal_model_sequences_total", role="embedder") == 3
    assert value(found, "bifocal_model_tokens_total", role="embedder") == 6
    assert 2 <= value(found, "bifocal_model_batches_total", role="embedder") <= 3


def test_a_model_that_is_loaded_anew_does_not_count_backwards() -> None:
    metrics = Metrics()
    for activity in (Activity(5, 5, 5), Activity(2, 3, 4)):
        metrics.activities = lambda activity=activity: {"embedder": activity}  # type: ignore[misc]
        metrics.look()
    assert value(samples_of(metrics.exposed().decode()), "bifocal_model_tokens_total", role="embedder") == 9


def test_a_key_for_metrics_reads_them_and_nothing_else(tmp_path: Path) -> None:
    rows = SqliteRows(tmp_path / "bifocal.db")
    scraper, restricted = (
        new_key("scraper", scopes=[Scope.METRICS], collections=names) for names in (None, ["demo"])
    )
    for stored, _ in (scraper, restricted):
        rows.add_key(stored)
    rows.close()
    with client_of(settings_in(tmp_path)) as client:
        assert_problem(client.get("/metrics"), 401, "unauthenticated")
        headers = {"Authorization": f"Bearer {scraper[1]}"}
        assert client.get("/metrics", headers=headers).status_code == 200
        assert_problem(client.get("/v1/collections", headers=headers), 403, "forbidden")
        answer = client.get("/metrics", headers={"X-API-Key": restricted[1]})
        assert_problem(answer, 403, "forbidden")


COUNT = """
import sys
from app.api.metrics import Metrics
from app.api.store_metrics import StoreCollector
from app.engine.activity import Activity
metrics = Metrics()
metrics.activities = lambda: {"embedder": Activity(1, 2, 3, 0)}
metrics.n_permits = lambda: 4
metrics.count_request("get_job", 200, 0.01)
if sys.argv[1:]:
    sys.stdout.write(metrics.exposed().decode())
"""


def test_processes_add_up_their_counts_and_forget_gauges_of_the_dead(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", COUNT, *arguments],
            cwd=ROOT,
            env={**os.environ, MULTIPROCESS_FOLDER: str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    run()
    run()
    found = samples_of(run("show"))
    assert value(found, "bifocal_requests_total", operation="get_job", status="200") == 3
    assert value(found, "bifocal_request_seconds_count", operation="get_job") == 3
    assert value(found, "bifocal_model_tokens_total", role="embedder") == 9
    assert value(found, "bifocal_search_permits") == 4


def test_the_dashboard_asks_for_metrics_that_exist(client: TestClient) -> None:
    search(client)
    exposed = set(re.findall(r"^# TYPE (\w+)", client.get("/metrics").text, re.MULTILINE))
    dashboard = (ROOT / "deploy" / "grafana" / "bifocal.json").read_text(encoding="utf-8")
    panels = json.loads(dashboard)["panels"]
    asked = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for panel in panels
        for target in panel.get("targets", [])
        for name in re.findall(r"\b(?:bifocal|process)_\w+", target["expr"])
    }
    assert len(panels) >= 12
    assert asked <= exposed, asked - exposed


def test_the_documents_name_every_metric(client: TestClient) -> None:
    exposed = re.findall(r"^# TYPE (bifocal_\w+)", client.get("/metrics").text, re.MULTILINE)
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert len(exposed) > 20
    assert [name for name in exposed if f"`{name}" not in page] == []
