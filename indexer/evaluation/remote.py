"""Evaluation of a running service, through HTTP alone."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import httpx

from app.domain import JobState, OutcomeStatus, SearchSettings
from app.errors import BifocalError, JobFailed, Overloaded
from indexer.evaluation.asking import Answer, Ask
from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import CorpusDocument
from indexer.evaluation.indexing import Indexed, batches, require_only_the_corpus
from indexer.evaluation.metrics import DEPTH

TIMEOUT_S = 120.0
TOO_MUCH = frozenset({httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.TOO_MANY_REQUESTS})
PATIENCE_S = 60.0
"""How long a service that is overloaded or still loading its model is asked again."""
POLL_S = 0.1
ROUND_TRIP = "round_trip"
"""Stage that the client measures: a request until its answer is read and parsed."""


class ServiceRefused(BifocalError):
    """The message is the service's own."""


class Service:
    """A running service. Create the client with `base_url` and without a short timeout."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def collection(self, name: str) -> dict[str, Any]:
        """Settings and statistics."""
        return self._request("GET", _path(name))

    def index(
        self,
        name: str,
        documents: Iterator[CorpusDocument],
        *,
        advance: Callable[[int], None] = lambda _: None,
    ) -> Indexed:
        """Create the collection where it is missing, and wait until every document has its outcome.

        Raises:
            ServiceRefused, JobFailed, InvalidInput: the collection holds other documents, too.
        """
        self._request("PUT", _path(name))
        indexed = Indexed()
        began = time.monotonic()
        for batch in batches(documents):
            job = self._request(
                "POST",
                f"{_path(name)}/documents",
                content=b"\n".join(batch),
                headers={"Content-Type": "application/x-ndjson"},
            )
            job = self._finished(job, advance=advance)
            indexed.add({OutcomeStatus(status): n for status, n in job["counts"].items()})
            if indexed.n_rejected and indexed.first_error is None:
                indexed.first_error = self._first_error(job["id"])
        indexed.seconds = time.monotonic() - began
        n_documents = self.collection(name)["stats"]["n_documents"]
        require_only_the_corpus(name, n_documents=n_documents, indexed=indexed)
        return indexed

    def set_search_settings(self, name: str, settings: SearchSettings) -> None:
        self._request("PUT", f"{_path(name)}/search-settings", json=asdict(settings))

    def asking(self, name: str) -> Ask:
        path = f"{_path(name)}/search/asymmetric"

        def ask(query: str, configuration: Configuration) -> Answer:
            body = {"query": query, "top_k": DEPTH, "passages_per_hit": 1, **configuration.fields}
            answered, round_trip_ms = self._timed("POST", path, json=body)
            return Answer(
                document_ids=tuple(hit["document_id"] for hit in answered["hits"]),
                timings_ms={**answered["timings_ms"], ROUND_TRIP: round_trip_ms},
                is_truncated=answered["query"]["truncated"],
            )

        return ask

    def _finished(self, job: dict[str, Any], *, advance: Callable[[int], None]) -> dict[str, Any]:
        n_done = 0
        while True:
            job = self._request("GET", f"v1/jobs/{job['id']}")
            advance(job["n_done"] - n_done)
            n_done = job["n_done"]
            if job["state"] == JobState.SUCCEEDED:
                return job
            if JobState(job["state"]).is_final:
                raise JobFailed(
                    f"indexing the corpus ended as {job['state']}: {job['error'] or 'no reason given'}"
                )
            time.sleep(POLL_S)

    def _first_error(self, job_id: str) -> str | None:
        cursor: str | None = None
        while True:
            page = self._request(
                "GET", f"v1/jobs/{job_id}/outcomes", params={} if cursor is None else {"cursor": cursor}
            )
            for outcome in page["outcomes"]:
                if outcome["status"] == OutcomeStatus.REJECTED:
                    return f"{outcome['document_id']}: {outcome['error']}"
            cursor = page["next_cursor"]
            if cursor is None:
                return None

    def _request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return self._timed(method, path, **options)[0]

    def _timed(self, method: str, path: str, **options: Any) -> tuple[dict[str, Any], float]:
        """(body, milliseconds), of the attempt that was not refused as too much at once.

        Raises:
            ServiceRefused: any other refusal, or no service there.
            Overloaded: it has not been able to answer for a long time.
        """
        until = time.monotonic() + PATIENCE_S
        while True:
            began = time.perf_counter()
            try:
                answer = self._client.request(method, path, **options)
            except httpx.HTTPError as error:
                raise ServiceRefused(f"no answer from {self._client.base_url}: {error}") from error
            if answer.status_code < 300:
                body: dict[str, Any] = answer.json()
                return body, 1000 * (time.perf_counter() - began)
            if answer.status_code not in TOO_MUCH:
                raise ServiceRefused(f"{answer.url} answered {answer.status_code}: {_detail(answer)}")
            wait_s = float(answer.headers.get("Retry-After", 1))
            if time.monotonic() + wait_s > until:
                raise Overloaded(
                    f"{answer.url} answered {answer.status_code} for {PATIENCE_S:.0f} s: {_detail(answer)}"
                )
            time.sleep(wait_s)


def _path(collection: str) -> str:
    return f"v1/collections/{quote(collection, safe='')}"


def _detail(answer: httpx.Response) -> str:
    """What a problem document says, or the beginning of whatever came."""
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
