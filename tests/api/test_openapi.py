"""The interface description: current, complete, and its examples work as sent."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.api import openapi
from app.api.classifiers import EXAMPLES
from app.api.problems import KINDS
from app.engine.text_models import load_text_models
from app.main import create_app
from app.settings import Settings
from indexer.demo import CORPUS
from tests.api.stand_up import client_of, settings_in, worker_of
from tests.project.repository import ROOT
from tests.reading_substitutes import overlap_models
from tests.text_substitutes import tiny_text_settings

DOCUMENT: dict[str, Any] = create_app(Settings()).openapi()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    (method, path, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
each_operation = pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[each["operationId"] for _, _, each in OPERATIONS]
)
OPERATION_IDS = [
    "activate_classifier",
    "answer_from_contexts",
    "answer_question",
    "cancel_job",
    "classify_sequence",
    "classify_token",
    "delete_alias",
    "delete_classifier",
    "delete_collection",
    "delete_document",
    "delete_evaluation",
    "examine_store",
    "get_alias",
    "get_classifier",
    "get_collection",
    "get_document",
    "get_evaluation",
    "get_job",
    "get_liveness",
    "get_metrics",
    "get_readiness",
    "inspect_attention",
    "inspect_embeddings",
    "inspect_fill_mask",
    "inspect_next_sentence",
    "list_aliases",
    "list_classifier_versions",
    "list_classifiers",
    "list_collections",
    "list_documents",
    "list_evaluations",
    "list_job_outcomes",
    "list_jobs",
    "list_models",
    "post_documents",
    "post_evaluation",
    "post_evaluation_files",
    "post_files",
    "put_alias",
    "put_classifier",
    "put_collection",
    "put_document",
    "put_search_settings",
    "reindex_collection",
    "roll_back_collection",
    "search_asymmetric",
    "search_symmetric",
    "stream_job_events",
    "tokenize",
]


def test_the_committed_document_is_current() -> None:
    committed = (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")
    assert committed == openapi.rendered(create_app(Settings())), (
        "regenerate it: python -m app.main > docs/openapi.json"
    )


def test_operation_ids_are_those_that_clients_were_generated_from() -> None:
    assert sorted(operation["operationId"] for _, _, operation in OPERATIONS) == OPERATION_IDS


@each_operation
def test_an_operation_says_what_it_does(method: str, path: str, operation: dict[str, Any]) -> None:
    assert len(operation["summary"]) > 5
    assert len(operation["description"]) > 15
    assert operation["tags"]
    for parameter in operation.get("parameters", []):
        assert parameter["description"]
    for response in operation["responses"].values():
        assert response["description"] not in {"", "Successful Response"}


@each_operation
def test_every_error_is_documented_as_a_problem(method: str, path: str, operation: dict[str, Any]) -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    errors = {status: each for status, each in operation["responses"].items() if status >= "400"}
    assert {"400", "422", "500", "503"} <= set(errors)
    assert all(each["content"] == problem for each in errors.values())


def test_every_status_of_the_error_table_is_documented_somewhere() -> None:
    documented = {int(status) for _, _, operation in OPERATIONS for status in operation["responses"]}
    assert {kind.status for kind in KINDS.values()} <= documented


def test_every_number_says_its_unit_or_scale() -> None:
    for name, schema in SCHEMAS.items():
        for field, described in schema.get("properties", {}).items():
            if described.get("type") in {"integer", "number"}:
                assert described.get("description"), f"{name}.{field}"


def test_every_reference_leads_somewhere() -> None:
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)):
        assert name in SCHEMAS


def request_examples() -> Iterator[tuple[str, str, str, Any]]:
    for method, path, operation in OPERATIONS:
        url = path
        for parameter in operation.get("parameters", []):
            for each in parameter.get("examples", {}).values():
                url = url.replace(f"{{{parameter['name']}}}", str(each["value"]))
        if "{" in url:  # of jobs, whose ids no document can know
            continue
        bodies = operation.get("requestBody", {}).get("content", {})
        if not bodies:
            yield method, url, "", None
        for media_type, content in bodies.items():
            for example in content.get("examples", {}).values():
                yield method, url, media_type, example["value"]


def test_every_body_has_an_example_but_files() -> None:
    without = [
        operation["operationId"]
        for _, _, operation in OPERATIONS
        for content in operation.get("requestBody", {}).get("content", {}).values()
        if not content.get("examples")
    ]
    assert sorted(without) == ["post_evaluation_files", "post_files"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The demo corpus, as `make run` shows it."""
    folder = tmp_path_factory.mktemp("demo")
    settings = settings_in(folder, **tiny_text_settings(folder))
    texts = load_text_models(settings)
    with worker_of(settings), client_of(settings, reading=overlap_models(), texts=texts) as client:
        assert client.put("/v1/collections/demo").status_code == 201
        fill_with(client, CORPUS)
        train(client)
        yield client


def fill_with(client: TestClient, corpus: Path) -> None:
    answer = client.post(
        "/v1/collections/demo/documents",
        content=corpus.read_bytes(),
        headers={"Content-Type": "application/x-ndjson", "Prefer": "wait=60"},
    )
    assert answer.json()["job"]["counts"].keys() <= {"created", "updated", "unchanged"}


def train(client: TestClient) -> None:
    assert client.put("/v1/classifiers/intents", json={"examples": EXAMPLES}).status_code < 300


def settle(client: TestClient, location: str) -> None:
    while (job := client.get(location).json())["finished_at"] is None:
        time.sleep(0.02)
    assert job["state"] == "succeeded", job


def restored(client: TestClient) -> None:
    client.put("/v1/collections/demo")
    fill_with(client, CORPUS)
    train(client)


@pytest.mark.parametrize(
    ("method", "url", "media_type", "body"),
    [pytest.param(*each, id=f"{each[0]} {each[1]} {i}") for i, each in enumerate(request_examples())],
)
def test_an_example_works_as_sent(
    demo: TestClient, method: str, url: str, media_type: str, body: Any
) -> None:
    headers: Mapping[str, str] = {"Content-Type": media_type} if media_type else {}
    content = body if isinstance(body, str) else json.dumps(body)
    answer = demo.request(method, url, headers=headers, content=content if media_type else None)
    assert answer.status_code < 300, answer.text
    if "/search/" in url:
        assert len(answer.json()["hits"]) == body["top_k"]
    if answer.status_code == 202 and "/v1/jobs/" in answer.headers["location"]:
        settle(demo, answer.headers["location"])  # the next example may need what it makes
    if method == "delete":
        restored(demo)
