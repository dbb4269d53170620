"""What an evaluation asks: a store in this process, or a running service; with the corpus put in first."""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.domain import Collection, SearchSettings
from app.engine.reading_models import ReadingModels, load_reading_models
from app.errors import InvalidInput
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import Store, open_embedder, open_store
from indexer.cli.corpora import progress, put_in
from indexer.evaluation import local
from indexer.evaluation.asking import Ask
from indexer.evaluation.configurations import RERANK, configurations
from indexer.evaluation.dataset import Dataset, read_corpus
from indexer.evaluation.indexing import Indexed
from indexer.evaluation.remote import TIMEOUT_S, Service


@dataclass(frozen=True, slots=True)
class Request:
    """What the command was asked for; None where an option was not given."""

    data: Path | None
    split: str
    queries: Path | None
    qrels: Path | None
    collection: str | None
    modes: Sequence[str]
    url: str | None
    home: Path | None
    output: Path
    limit_queries: int | None
    tune: str | None
    apply: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked, ready to be asked."""

    ask: Ask
    apply: Callable[[SearchSettings], object]
    """Make these the defaults of the collection that is asked."""
    details: dict[str, Any]
    indexed: Indexed | None


@contextmanager
def open_subject(settings: Settings, request: Request, dataset: Dataset) -> Iterator[Subject]:
    if request.url is not None:
        if request.home is not None:
            raise InvalidInput(
                "--url asks a running service, --home a store in this process; give one of them"
            )
        secret = settings.api_key.get_secret_value()
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        with httpx.Client(base_url=request.url, timeout=TIMEOUT_S, headers=headers) as client:
            yield _served(Service(client), request, dataset)
        return
    with ExitStack() as stack:
        home = request.home or settings.home
        if dataset.corpus is not None and request.home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bifocal-")))
        settings = settings.model_copy(update={"home": home})
        store = stack.enter_context(open_store(settings))
        collection, indexed = _indexed(store, settings, request, dataset)
        embedder = stack.enter_context(open_embedder(settings))
        stats = store.rows.collection_stats(collection.key)
        details = {
            "model": collection.model,
            "runtime": embedder.description.runtime,
            "collection": collection.name,
            "n_passages": stats.n_passages,
            "searched": "in the process of the evaluation",
        }
        reading = load_reading_models(settings) if RERANK in request.modes else ReadingModels()
        stack.callback(reading.close)
        local.require_reranker(reading, configurations(request.modes))
        search = Search(store.rows, store.index, embedder, reading)
        yield Subject(
            ask=local.asking(search, collection),
            apply=partial(store.rows.set_search_settings, collection.name),
            details=details,
            indexed=indexed,
        )


def _indexed(
    store: Store, settings: Settings, request: Request, dataset: Dataset
) -> tuple[Collection, Indexed | None]:
    if dataset.corpus is None:
        assert request.collection is not None
        return store.rows.collection(request.collection), None
    return put_in(
        store,
        settings,
        _collection_name(request, dataset),
        read_corpus(dataset.corpus),
        n_documents=dataset.n_documents,
    )


def _served(service: Service, request: Request, dataset: Dataset) -> Subject:
    name = _collection_name(request, dataset)
    indexed = None
    if dataset.corpus is not None:
        with progress("indexing", dataset.n_documents) as advance:
            indexed = service.index(name, read_corpus(dataset.corpus), advance=advance)
    shown = service.collection(name)
    details = {
        "model": shown["model"],
        "collection": name,
        "n_passages": shown["stats"]["n_passages"],
        "searched": f"through HTTP at {request.url}",
    }
    return Subject(
        ask=service.asking(name),
        apply=partial(service.set_search_settings, name),
        details=details,
        indexed=indexed,
    )


def _collection_name(request: Request, dataset: Dataset) -> str:
    """One that no one else uses, unless it was given."""
    return request.collection or f"evaluation-{re.sub(r'[^a-z0-9_-]+', '-', dataset.name.lower())}"[:63]
