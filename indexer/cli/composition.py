"""Settings to objects for the indexer's side: rows, index, encoder, worker.

Each command takes only what it needs; loading the model takes a second, the rows a few milliseconds.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.domain import COLLECTION_NAME, Collection, CollectionSettings, SplitterSettings
from app.engine.embedder import Embedder
from app.engine.embedders import Embedders, load_embedders, settings_of_second
from app.engine.models import BiEncoderFiles, find_bi_encoder, load_embedder, load_tokenizer
from app.engine.reading_models import ReadingModels, load_reading_models
from app.errors import CollectionNotFound, InvalidInput
from app.services.reindexing import require_own_documents
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.rows import ClaimedJob, Rows
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from indexer.reading import ReaderProcess
from indexer.rebuilding import Rebuild
from indexer.worker import Worker


@dataclass(frozen=True, slots=True)
class Store:
    rows: SqliteRows
    index: EmbeddedIndex


@contextmanager
def open_rows(settings: Settings) -> Iterator[SqliteRows]:
    rows = SqliteRows(settings.rows_file)
    try:
        yield rows
    finally:
        rows.close()


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    with open_rows(settings) as rows:
        index = EmbeddedIndex(rows, settings.index_folder, settings)
        try:
            yield Store(rows, index)
        finally:
            index.close()


@contextmanager
def open_embedder(settings: Settings) -> Iterator[Embedder]:
    embedder = load_embedder(settings)
    try:
        yield embedder
    finally:
        embedder.close()


@contextmanager
def open_reading(settings: Settings) -> Iterator[ReadingModels]:
    """Reranker and reader, where models have these roles."""
    models = load_reading_models(settings)
    try:
        yield models
    finally:
        models.close()


@contextmanager
def open_embedders(settings: Settings) -> Iterator[Embedders]:
    """With the second one, where there is one."""
    embedders = load_embedders(settings, load_embedder)
    try:
        yield embedders
    finally:
        embedders.close()


@contextmanager
def open_worker(store: Store, settings: Settings) -> Iterator[Worker]:
    with (
        open_embedders(settings) as embedders,
        ReaderProcess(timeout_s=settings.file_timeout_s, memory_bytes=settings.file_memory_bytes) as process,
    ):
        encoder, second = _document_encoder(embedders.first, settings), None
        if embedders.second is not None:
            second = _document_encoder(embedders.second, settings_of_second(settings))
        reader = InputReader(
            settings, lambda file: process.read(file.name or "", file.body, media_type=file.media_type)
        )
        ingestion = Ingestion(store.rows, store.index, encoder, reader, second=second)
        yield Worker(
            store.rows,
            store.index,
            ingestion,
            settings=settings,
            evaluate=partial(_evaluate, store, settings, embedders),
            rebuild=Rebuild(store.rows, store.index, encoder, pause=ingestion.paused, second=second),
        )


def _document_encoder(embedder: Embedder, settings: Settings) -> DocumentEncoder:
    files = encoder_files(settings)
    return DocumentEncoder(embedder, load_tokenizer(files), document_prompt=files.document_prompt)


def _evaluate(
    store: Store, settings: Settings, embedders: Embedders, claimed: ClaimedJob, **how: Any
) -> None:
    from indexer.evaluation.jobs import process  # noqa: PLC0415  takes 60 MB, and most workers never need it

    process(
        claimed,
        rows=store.rows,
        index=store.index,
        embedder=embedders.made(claimed.collection.fingerprint) or embedders.first,
        load_reading=lambda: load_reading_models(settings),
        **how,
    )


def encoder_files(settings: Settings) -> BiEncoderFiles:
    """What is known of the encoder without loading it."""
    return find_bi_encoder(settings.embedder, offline=settings.offline)


def create_collection(
    rows: Rows, name: str, settings: Settings, splitter: SplitterSettings
) -> tuple[Collection, bool]:
    """For the encoder of these settings; gives (collection, was created).

    Raises:
        InvalidInput: a name that the service could not be asked for.
    """
    require_name(name, of="a collection")
    files = encoder_files(settings)
    return rows.create_collection(
        name, CollectionSettings(splitter), fingerprint=files.fingerprint, model=files.name
    )


def require_name(name: str, *, of: str) -> None:
    """Raises InvalidInput for what the service could not be asked for."""
    if re.fullmatch(COLLECTION_NAME, name) is None:
        raise InvalidInput(
            f"{of} cannot be called {name!r}; 1 to 63 characters of a-z, 0-9, _ and - are allowed, "
            "the first of them a letter or digit"
        )


def find_or_create_collection(rows: Rows, name: str, settings: Settings) -> Collection:
    """That collection whatever its settings, or a new one with default settings.

    Raises:
        CollectionInUse: it is a standby, which takes no documents.
    """
    try:
        collection = rows.collection(name)
    except CollectionNotFound:
        return create_collection(rows, name, settings, SplitterSettings())[0]
    require_own_documents(collection)
    return collection
