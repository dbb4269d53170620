"""What Prometheus reads at /metrics: counted here as requests end, or asked of the store when it is read.

Several processes of the service share their counts through files where PROMETHEUS_MULTIPROC_DIR names a
folder (prometheus-client's multi-process mode), which `bifocal serve --workers N` sees to.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from app.domain import SearchResult
from app.engine.activity import Activity

MULTIPROCESS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
OTHER = "other"
"""Operation of requests for what does not exist, and for the pages of the description."""


class Metrics:
    """Of one process. Requests are counted by the event loop, searches by the threads that did them.

    `activities` and `n_permits` say what models have done and how many permits are held; they are looked at
    whenever a request ends, so that processes which share counts need no threads for it.
    """

    def __init__(self) -> None:
        # A second series for each, which Prometheus does not use.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        folder = os.environ.get(MULTIPROCESS_FOLDER)
        self._registry = CollectorRegistry()
        if folder is None:
            ProcessCollector(registry=self._registry)
        else:
            _forget_dead(Path(folder))
        self._is_shared = folder is not None
        self._counted: dict[str, Activity] = {}
        self.activities: Callable[[], Mapping[str, Activity]] = dict
        self.n_permits: Callable[[], int] = int
        self._make_requests()
        self._make_models()

    def _make_requests(self) -> None:
        registry = self._registry
        self._requests = Counter(
            "bifocal_requests", "Requests answered.", ["operation", "status"], registry=registry
        )
        self._request_seconds = Histogram(
            "bifocal_request_seconds",
            "From the first byte of a request to the end of its answer.",
            ["operation"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._stage_seconds = Histogram(
            "bifocal_search_stage_seconds",
            "Stages of searches.",
            ["stage"],
            buckets=BUCKETS_S,
            registry=registry,
        )
        self._truncated = Counter(
            "bifocal_truncated_queries", "Queries that were cut to the model's limit.", registry=registry
        )
        self._permits = Gauge(
            "bifocal_search_permits",
            "Searches under way.",
            multiprocess_mode="livesum",
            registry=registry,
        )

    def _make_models(self) -> None:
        registry = self._registry
        self._batches = Counter("bifocal_model_batches", "Calls of the model.", ["role"], registry=registry)
        self._sequences = Counter(
            "bifocal_model_sequences", "Texts or pairs in them.", ["role"], registry=registry
        )
        self._tokens = Counter(
            "bifocal_model_tokens", "Tokens in them, without padding.", ["role"], registry=registry
        )
        self._waiting = Gauge(
            "bifocal_model_waiting",
            "Texts that wait for the model.",
            ["role"],
            multiprocess_mode="livesum",
            registry=registry,
        )

    def count_request(self, operation: str | None, status: int, seconds: float) -> None:
        """Status 499: the client went away before an answer."""
        self._requests.labels(operation or OTHER, status or 499).inc()
        self._request_seconds.labels(operation or OTHER).observe(seconds)
        self.look()

    def count_search(self, result: SearchResult) -> None:
        for stage, ms in result.timings_ms.items():
            self._stage_seconds.labels(stage).observe(ms / 1000)
        if result.query_truncated:
            self._truncated.inc()

    def exposed(self, *collectors: Collector) -> bytes:
        """In Prometheus' text format; the collectors are asked now. From any thread."""
        counted = CollectorRegistry() if self._is_shared else self._registry
        if self._is_shared:
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
        asked = CollectorRegistry()
        for collector in collectors:
            asked.register(collector)
        return generate_latest(counted) + generate_latest(asked)

    def look(self) -> None:
        """Count what models did since the last look. By the event loop, as all looks."""
        self._permits.set(self.n_permits())
        for role, now in self.activities().items():
            then = self._counted.get(role, Activity())
            if now == then:
                continue
            if now.n_batches < then.n_batches:  # another one was loaded in its place
                then = Activity()
            self._batches.labels(role).inc(now.n_batches - then.n_batches)
            self._sequences.labels(role).inc(now.n_sequences - then.n_sequences)
            self._tokens.labels(role).inc(now.n_tokens - then.n_tokens)
            self._waiting.labels(role).set(now.n_waiting)
            self._counted[role] = now


def _forget_dead(folder: Path) -> None:
    """Gauges of processes that ended without saying so count no more."""
    for file in folder.glob("gauge_live*_*.db"):
        process_id = int(file.stem.rpartition("_")[2])
        if not Path(f"/proc/{process_id}").exists():
            mark_process_dead(process_id, str(folder))  # type: ignore[no-untyped-call]
