"""Composition root of the service: settings in, a FastAPI application out.

uvicorn --factory app.main:create_app
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TypeVar

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.telemetry import TelemetryConfig

from app import __version__
from app.api import (
    aliases,
    answers,
    classification,
    classifiers,
    collections,
    docs_browser,
    doctor,
    documents,
    evaluations,
    files,
    inspection,
    jobs,
    openapi,
    problems,
    rebuilds,
    searches,
    service,
)
from app.api.keyring import Keyring
from app.api.metrics import Metrics
from app.api.middleware import BodyLimit, Envelope, Faults, Paths
from app.api.permits import Permits
from app.api.rates import RateLimit
from app.api.state import Parts, State
from app.api.traces import TracedRequests, Traces
from app.engine.embedder import Embedder
from app.engine.embedders import Embedders, load_embedders
from app.engine.inspected import InspectedModels
from app.engine.models import load_embedder
from app.engine.reading_models import ReadingModels, load_reading_models
from app.engine.text_models import TextModels, load_text_models
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.sqlite import SqliteRows

logger = logging.getLogger(__name__)

FAREWELL_S = 2.0
"""For waiting requests to get their 503, when the process ends because the model does not answer."""
LOAD = partial(load_embedder, farewell_s=FAREWELL_S)
LOAD_TEXTS = partial(load_text_models, farewell_s=FAREWELL_S)
LOAD_READING = partial(load_reading_models, farewell_s=FAREWELL_S)
M = TypeVar("M", ReadingModels, TextModels)
NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
"""FastAPI's own would tell paths, with ids of documents, and queries; see `app.api.traces`."""
EXPOSED_HEADERS = ("Location", "Preference-Applied", "Retry-After", "Server-Timing", "X-Request-Id")


def create_app(
    settings: Settings | None = None,
    *,
    load: Callable[[Settings], Embedder] = LOAD,
    load_reading: Callable[[Settings], ReadingModels] = LOAD_READING,
    load_texts: Callable[[Settings], TextModels] = LOAD_TEXTS,
    traces: Traces | None = None,
) -> FastAPI:
    """The service. Nothing is opened before its lifespan begins.

    Args:
        settings: read from the environment if not given.
        load: gives a bi-encoder, called once more where there is a second one; runs in a thread while the
            service already answers `/livez`.
        load_reading: gives reranker and reader, not necessarily loaded; runs after it.
        load_texts: gives the tagger and fine-tuned classifiers, as load_reading; runs last.
        traces: as OpenTelemetry's variables say if not given.
    """
    settings = settings or Settings.from_environment()
    metrics = Metrics()
    traces = traces or Traces()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        rows = SqliteRows(settings.rows_file)
        index = EmbeddedIndex(rows, settings.index_folder, settings)
        loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        loading = loader.submit(_load, load, settings)
        loading_reading = loader.submit(_load_reading, load_reading, settings)
        loading_texts = loader.submit(_load_texts, load_texts, settings)
        sending = ExitStack()
        try:
            sending.enter_context(traces.exporting())
            parts = Parts(
                settings,
                rows,
                index,
                loading,
                search_permits=Permits(settings.max_queue),
                training_permits=Permits(1, of="training", limit="at a time"),
                examination_permits=Permits(1, of="examination", limit="at a time"),
                inspected=InspectedModels(settings),
                keyring=Keyring(rows),
                rates=RateLimit(settings.rate_limit, settings.rate_burst),
                loading_reading=loading_reading,
                loading_texts=loading_texts,
                metrics=metrics,
                traces=traces,
            )
            metrics.activities = parts.activities
            metrics.n_permits = lambda: parts.search_permits.n_held
            yield {"parts": parts}
        finally:
            loader.shutdown()
            for model in (loading, loading_reading, loading_texts):
                if model.exception() is None:
                    model.result().close()
            index.close()
            rows.close()
            sending.close()

    app = FastAPI(
        title="Bifocal",
        version=__version__,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        telemetry=NO_TELEMETRY,
    )
    problems.install(app)
    openapi.install(app)
    for router in (
        searches.router,
        answers.router,
        documents.router,
        files.router,
        collections.router,
        rebuilds.router,
        aliases.router,
        evaluations.router,
        jobs.router,
        classification.router,
        classifiers.router,
        inspection.router,
        service.router,
        doctor.router,
        docs_browser.router,
    ):
        app.include_router(router)
    _surround(app, settings, metrics, traces)
    return app


def _surround(app: FastAPI, settings: Settings, metrics: Metrics, traces: Traces) -> None:
    """The one added last is outermost."""
    app.add_middleware(Faults)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    app.add_middleware(Paths, root_path=settings.root_path)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )
    app.add_middleware(TracedRequests, traces=traces)
    app.add_middleware(Envelope, metrics=metrics)


def _load(load: Callable[[Settings], Embedder], settings: Settings) -> Embedders:
    try:
        embedders = load_embedders(settings, load)
    except Exception:
        logger.exception("the bi-encoder cannot be loaded")
        raise
    for each in embedders.all:
        logger.info("bi-encoder loaded name=%s runtime=%s", each.description.name, each.description.runtime)
    return embedders


def _load_reading(load: Callable[[Settings], ReadingModels], settings: Settings) -> ReadingModels:
    try:
        return _preloaded(load(settings), settings)
    except Exception:
        logger.exception("the reranker or the reader cannot be loaded")
        raise


def _load_texts(load: Callable[[Settings], TextModels], settings: Settings) -> TextModels:
    try:
        return _preloaded(load(settings), settings)
    except Exception:
        logger.exception("the tagger or a fine-tuned classifier cannot be loaded")
        raise


def _preloaded(models: M, settings: Settings) -> M:
    if settings.preload:
        try:
            models.load()
        except Exception:
            models.close()
            raise
    return models


if __name__ == "__main__":
    sys.stdout.write(openapi.rendered(create_app(Settings())))
