"""Bifocal as a contender of benchmarks/peers.py: a service and a worker, asked over HTTP."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import httpx

from benchmarks.serving import resident_mib, served, working

COLLECTION = "peers"
POLL_S = 0.05


class Served:
    MODES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "bifocal": {"mode": "hybrid", "rerank": False},
        "bifocal dense": {"mode": "dense", "rerank": False},
        "bifocal lexical": {"mode": "lexical", "rerank": False},
    }
    """Contenders to the fields of their requests. All are the same two processes."""

    def __init__(self, client: httpx.Client, corpus: Path, process_ids: Mapping[str, int]) -> None:
        self._client = client
        self._corpus = corpus
        self._process_ids = process_ids
        self._fields: Mapping[str, Any] = {}
        self._seconds: list[float] = []

    @classmethod
    @contextmanager
    def started(cls, home: Path, corpus: Path) -> Iterator["Served"]:
        with (
            served(home) as (address, process_id, _),
            working(home, address) as worker_id,
            httpx.Client(base_url=address, timeout=600) as client,
        ):
            yield cls(client, corpus, {"service": process_id, "worker": worker_id})

    def asking(self, fields: Mapping[str, Any]) -> "Served":
        """The same service, asked that way. The corpus is indexed once for all of them."""
        other = Served(self._client, self._corpus, self._process_ids)
        other._fields, other._seconds = fields, self._seconds
        return other

    def index(self) -> float:
        if not self._seconds:
            began = time.perf_counter()
            self._client.put(f"/v1/collections/{COLLECTION}").raise_for_status()
            answer = self._client.post(
                f"/v1/collections/{COLLECTION}/documents",
                content=self._corpus.read_bytes(),
                headers={"Content-Type": "application/x-ndjson"},
            )
            answer.raise_for_status()
            self._wait(answer.json()["id"])
            self._seconds.append(time.perf_counter() - began)
        return self._seconds[0]

    def search(self, query: str, top_k: int) -> tuple[float, list[str]]:
        began = time.perf_counter()
        answer = self._client.post(
            f"/v1/collections/{COLLECTION}/search/asymmetric",
            json={"query": query, "top_k": top_k, **self._fields},
        )
        ms = 1000 * (time.perf_counter() - began)
        answer.raise_for_status()
        return ms, [hit["document_id"] for hit in answer.json()["hits"]]

    def about(self) -> dict[str, Any]:
        """What answers is the service; the worker may be stopped while nothing is written."""
        resident = {name: resident_mib(process_id) for name, process_id in self._process_ids.items()}
        return {"resident_mib": resident["service"], "worker_resident_mib": resident["worker"]}

    def _wait(self, job_id: str) -> None:
        while True:
            job = self._client.get(f"/v1/jobs/{job_id}").json()
            if job["state"] == "succeeded":
                return
            if job["state"] in {"failed", "cancelled"}:
                raise SystemExit(f"indexing ended as {json.dumps(job)}")
            time.sleep(POLL_S)
