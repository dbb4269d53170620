"""Metrics that are asked of the store: jobs, documents, indexes, the worker."""

import logging
from collections.abc import Iterator
from contextlib import suppress

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from app import __version__
from app.api.state import Parts
from app.domain import Collection, CollectionStats, JobState, View
from app.engine.description import HeadDescription
from app.engine.embedder import EmbedderDescription
from app.errors import BifocalError, NotFound
from app.storage.index import IndexStats

logger = logging.getLogger(__name__)

VIEWS: tuple[View, ...] = ("passages", "documents")


class StoreCollector(Collector):
    """Where the store cannot be read, `bifocal_store_up` is 0 and what it would have said is missing."""

    def __init__(self, service: Parts) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("bifocal", "Version.", {"version": __version__})
        yield from self._models()
        is_up = True
        try:
            yield from self._jobs()
            yield from self._collections()
        except BifocalError as error:
            logger.error("metrics of the store are missing: %s", error)  # noqa: TRY400 - it says what is wrong
            is_up = False
        yield GaugeMetricFamily("bifocal_store_up", "Whether the store can be read.", is_up)

    def _models(self) -> Iterator[Metric]:
        family = InfoMetricFamily("bifocal_model", "A model that has a role.", labels=["role"])
        loaded = GaugeMetricFamily(
            "bifocal_model_loaded", "Whether the model is in memory.", labels=["role", "name"]
        )
        found: list[tuple[str, EmbedderDescription | HeadDescription, bool]] = []
        with suppress(BifocalError):
            found += [(role, each.description, True) for role, each in self._service.embedders.by_role]
        with suppress(BifocalError):
            found += [(role, m.description, m.is_loaded) for role, m in self._service.reading.by_role]
        with suppress(BifocalError):
            found += [(role, m.description, m.is_loaded) for role, m in self._service.texts.by_role]
        for role, model, is_loaded in found:
            family.add_metric([role], {"name": model.name, "runtime": model.runtime})
            loaded.add_metric([role, model.name], is_loaded)
        yield family
        yield loaded

    def _jobs(self) -> Iterator[Metric]:
        rows = self._service.rows
        counts = rows.job_counts()
        jobs = GaugeMetricFamily("bifocal_jobs", "Jobs that are remembered, by state.", labels=["state"])
        for state in JobState:
            jobs.add_metric([state], counts.get(state, 0))
        yield jobs
        yield GaugeMetricFamily("bifocal_worker_up", "Whether a worker is alive.", rows.worker_alive())

    def _collections(self) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"bifocal_{name}", text, labels=["collection"])
            for name, text in (
                ("documents", "Documents stored."),
                ("passages", "Passages stored."),
                ("passage_tokens", "Tokens of all documents."),
                ("text_bytes", "Stored texts."),
                ("unknown_share", "Share of tokens that the model cannot read."),
            )
        }
        indexes = {
            name: GaugeMetricFamily(f"bifocal_index_{name}", text, labels=["collection", "view"])
            for name, text in (
                ("generation", "Number of the base file that searches use."),
                ("base_vectors", "Vectors in the base file."),
                ("tail_vectors", "Vectors beside the base file."),
                ("deleted_vectors", "Deleted vectors that still occupy the base file."),
                ("size_bytes", "Size of the base file."),
                ("recall", "Recall at 10, measured when an approximate base file was built."),
            )
        }
        for collection in self._service.rows.collections():
            try:
                stats = self._service.rows.collection_stats(collection.key)
                views = {view: self._service.index.stats(collection, view) for view in VIEWS}
            except NotFound:  # dropped meanwhile
                continue
            _add_documents(families, collection, stats)
            for view, found in views.items():
                _add_index(indexes, collection, view, found)
        yield from families.values()
        yield from indexes.values()


def _add_documents(
    families: dict[str, GaugeMetricFamily], collection: Collection, stats: CollectionStats
) -> None:
    for name, value in (
        ("documents", stats.n_documents),
        ("passages", stats.n_passages),
        ("passage_tokens", stats.n_tokens),
        ("text_bytes", stats.size_bytes),
        ("unknown_share", stats.unknown_share),
    ):
        families[name].add_metric([collection.name], value)


def _add_index(
    families: dict[str, GaugeMetricFamily], collection: Collection, view: View, stats: IndexStats
) -> None:
    for name, value in (
        ("generation", stats.generation),
        ("base_vectors", stats.n_base),
        ("tail_vectors", stats.n_tail),
        ("deleted_vectors", stats.n_deleted),
        ("size_bytes", stats.size_bytes),
        ("recall", stats.details.get("recall_at_10")),
    ):
        if isinstance(value, int | float):
            families[name].add_metric([collection.name, view], value)
