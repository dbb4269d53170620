"""The whole service in one process: the application, and a worker in a thread, over real rows and index."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from app.api.traces import Traces
from app.engine.embedder import Embedder
from app.engine.embedders import Embedders
from app.engine.reading_models import ReadingModels
from app.engine.text_models import TextModels
from app.main import create_app
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.rows import ClaimedJob
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.evaluation.jobs import process
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from indexer.rebuilding import Rebuild
from indexer.worker import Worker
from tests.indexer.stand_ins import packaged_tokenizer, read_plain_text
from tests.substitutes import WordHashEmbedder

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a/b", "text": "A river runs through the valley.", "title": "Rivers", "metadata": {"year": 1999}},
    {
        "id": "bridge",
        "text": "The bridge crosses the river.",
        "metadata": {"tags": ["x", 1, 2.5, True, None]},
    },
    {"id": "castle", "text": "A castle stands on the mountain."},
]


SECOND = "word-hash-too"
"""Name of a second bi-encoder: `settings_in(folder, second_embedder=SECOND)`."""


def second_embedder() -> WordHashEmbedder:
    return WordHashEmbedder(fingerprint="word-hash-2", name=SECOND)


@contextmanager
def client_of(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    reading: ReadingModels | None = None,
    texts: TextModels | None = None,
    traces: Traces | None = None,
    **options: Any,
) -> Iterator[TestClient]:
    """A client of the running application; unexpected failures are answered, not raised."""
    app = create_app(
        settings,
        load=lambda of: second_embedder() if of.embedder == SECOND else embedder or WordHashEmbedder(),
        load_reading=lambda _: reading or ReadingModels(),
        load_texts=lambda _: texts or TextModels(),
        traces=traces,
    )
    options = {"raise_server_exceptions": False, "base_url": "http://127.0.0.1:8000", **options}
    with TestClient(app, **options) as client:
        yield client


@contextmanager
def worker_of(settings: Settings) -> Iterator[None]:
    """A worker that runs until the block is left."""
    rows = SqliteRows(settings.home / "bifocal.db")
    index = EmbeddedIndex(rows, settings.home / "indexes", settings)
    embedders = Embedders(WordHashEmbedder(), second_embedder() if settings.second_embedder else None)
    encoder, *others = (DocumentEncoder(each, packaged_tokenizer()) for each in embedders.all)
    second = others[0] if others else None
    ingestion = Ingestion(rows, index, encoder, InputReader(settings, read_plain_text), second=second)
    rebuild = Rebuild(rows, index, encoder, pause=ingestion.paused, second=second)

    def evaluate(claimed: ClaimedJob, **how: Any) -> None:
        embedder = embedders.made(claimed.collection.fingerprint) or embedders.first
        process(claimed, rows=rows, index=index, embedder=embedder, **how)

    worker = Worker(rows, index, ingestion, settings=settings, evaluate=evaluate, rebuild=rebuild)
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        index.close()
        rows.close()


def settings_in(folder: Path, **fields: Any) -> Settings:
    return Settings(home=folder, **fields)


def fill(client: TestClient, collection: str = "demo") -> None:
    """Three documents in a new collection."""
    assert client.put(f"/v1/collections/{collection}").status_code == 201
    answer = client.post(
        f"/v1/collections/{collection}/documents",
        json={"documents": DOCUMENTS},
        headers={"Prefer": "wait=30"},
    )
    assert [outcome["status"] for outcome in answer.json()["outcomes"]] == ["created"] * 3


def assert_problem(answer: Any, status: int, slug: str) -> dict[str, Any]:
    """The one shape of every error; returns it."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = json.loads(answer.content)
    assert body["type"] == f"urn:bifocal:problem:{slug}"
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    return body
