"""What the service imports when it trains, classifies and looks inside."""

import os
import subprocess
import sys
from pathlib import Path

from tests.project.repository import ROOT

CALLS = """
import sys
import time
from pathlib import Path

from starlette.testclient import TestClient

from app.api.classifiers import EXAMPLES
from app.main import create_app
from app.settings import Settings

settings = Settings(home=Path(sys.argv[1]), models=Path(sys.argv[1]))
with TestClient(create_app(settings), base_url="http://127.0.0.1:8000") as client:
    while client.get("/v1/models").status_code == 503:
        time.sleep(0.05)
    assert client.put("/v1/classifiers/intents", json={"examples": EXAMPLES}).status_code == 201
    for path, body in (
        ("classify/sequence", {"texts": ["where is my card"], "classifier": "intents"}),
        ("classify/sequence", {"texts": ["where is my card"], "labels": ["card", "rate"]}),
        ("tokenize", {"texts": ["a"]}),
        ("inspect/attention", {"text": "a"}),
        ("inspect/embeddings", {"text": "a"}),
    ):
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == 200, answer.text
print(*sorted({name.partition(".")[0] for name, module in sys.modules.items() if module is not None}))
"""


def test_training_and_looking_inside_import_neither_torch_nor_scikit_learn(
    tmp_path: Path, model_cache: Path
) -> None:
    environment = {**os.environ, "BIFOCAL_CACHE": str(model_cache), "BIFOCAL_RUNTIME": "openvino"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert "openvino" in imported
    assert not imported & {"torch", "transformers", "sentence_transformers", "sklearn", "pandas"}
