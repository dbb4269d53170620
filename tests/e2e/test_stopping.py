"""The service ends when it is told to, whoever is still connected."""

import subprocess
import sys
import time
from pathlib import Path

import httpx

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
