"""The service ends when it is told to, whoever is still connected."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import ROOT, free_port


def test_a_client_that_follows_a_job_does_not_keep_the_service_from_stopping(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Without a worker the job never ends, and neither would its events."""
    port = free_port()
    service = subprocess.Popen(
        [sys.executable, "-m", "indexer", "serve", "--port", str(port)],
        cwd=ROOT,
        env={**environment, "BIFOCAL_HOME": str(tmp_path)},
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            job_id = submitted_job(client)
            with client.stream("GET", f"/v1/jobs/{job_id}/events") as events:
                lines = events.iter_lines()  # held: without it the stream would be closed
                assert next(lines) == "event: progress"
                service.terminate()
                service.wait(timeout=30)
    finally:
        service.kill()
        service.wait()


def test_requests_under_way_are_answered_before_the_service_stops(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Without a worker a write waits as long as it was asked to."""
    port = free_port()
    service = subprocess.Popen(
        [sys.executable, "-m", "indexer", "serve", "--port", str(port)],
        cwd=ROOT,
        env={**environment, "BIFOCAL_HOME": str(tmp_path)},
    )
    try:
        with (
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
            ThreadPoolExecutor(1) as pool,
        ):
            submitted_job(client)
            answering = pool.submit(
                client.post,
                "/v1/collections/demo/documents",
                json={"documents": [{"id": "b", "text": "y"}]},
                headers={"Prefer": "wait=3"},
            )
            while n_jobs(port) < 2:
                time.sleep(0.02)
            service.terminate()
            assert answering.result().status_code == 202
        assert service.wait(timeout=30) in (0, -signal.SIGTERM)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/livez")
    finally:
        service.kill()
        service.wait()


def n_jobs(port: int) -> int:
    return len(httpx.get(f"http://127.0.0.1:{port}/v1/jobs").json()["jobs"])


def submitted_job(client: httpx.Client) -> str:
    while True:
        try:
            answer = client.put("/v1/collections/demo")
        except httpx.TransportError:
            time.sleep(0.05)
            continue
        if answer.status_code == 201:
            break
    documents = {"documents": [{"id": "a", "text": "x"}]}
    return str(client.post("/v1/collections/demo/documents", json=documents).json()["id"])
