"""What a process that only encodes imports and how its memory behaves."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

IMPORTS = """
import sys
from app.engine.models import load_embedder
from app.settings import Settings
embedder = load_embedder(Settings())
assert embedder.encode_queries(["a question"]).vectors.shape == (1, 384)
embedder.close()
print(*sorted(name for name, module in sys.modules.items() if module is not None))
"""

SOAK = """
import random
from pathlib import Path
from app.engine.models import load_embedder
from app.settings import Settings

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

embedder = load_embedder(Settings())
choice = random.Random(0)
def encode_some(n_calls):
    for _ in range(n_calls):
        embedder.encode_documents(["word " * choice.randint(1, 60) for _ in range(choice.randint(1, 6))])
encode_some(50)
before = resident_mb()
encode_some(150)
print(before, resident_mb() - before)
"""


def run_python(code: str, cache: Path) -> str:
    environment = {**os.environ, "BIFOCAL_CACHE": str(cache), "BIFOCAL_RUNTIME": "openvino"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_encoding_with_the_compiled_model_imports_no_torch_and_no_telemetry(model_cache: Path) -> None:
    imported = {name.partition(".")[0] for name in run_python(IMPORTS, model_cache).split()}
    assert "openvino" in imported
    assert not imported & {"torch", "transformers", "sentence_transformers", "nncf", "openvino_telemetry"}


def test_memory_does_not_grow_with_the_variety_of_shapes(model_cache: Path) -> None:
    before_mb, growth_mb = map(float, run_python(SOAK, model_cache).split())
    assert before_mb < 400
    assert growth_mb < 30
