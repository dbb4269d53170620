import subprocess
import sys
from pathlib import Path

import httpx

from app.engine.watchdog import STUCK_EXIT_CODE
from tests.api.stand_up import assert_problem
from tests.e2e.conftest import ROOT, free_port
from tests.indexer.stand_ins import wait_until


def test_service_whose_model_stands_still_says_so_and_ends(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.api.stuck_service", str(tmp_path), str(port)], cwd=ROOT
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_until(lambda: answers(client))
            assert client.put("/v1/collections/demo").status_code == 201
            answer = client.post("/v1/collections/demo/search/asymmetric", json={"query": "a question"})
            problem = assert_problem(answer, 503, "model-unavailable")
            assert problem["detail"] == "a call of the model has not returned for 1 s"
            assert int(answer.headers["retry-after"]) >= 1
            readiness = assert_problem(client.get("/readyz"), 503, "not-ready")
            assert readiness["checks"]["embedder"] == problem["detail"]
        assert process.wait(60) == STUCK_EXIT_CODE
    finally:
        process.kill()
        process.wait()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/v1/models").status_code == 200
    except httpx.TransportError:
        return False
