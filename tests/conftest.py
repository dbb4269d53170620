"""The real encoder, loaded once per session, and the modules that assert without being tests themselves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.embedder import Embedder
from app.engine.models import load_embedder
from app.settings import Settings
from indexer.preparation import prepare

# Here, before any test imports them: pytest can no longer explain the asserts of a module that is loaded.
CONTRACTS = sorted(path.stem for path in (Path(__file__).parent / "storage").glob("*_contract.py"))
for module in (*CONTRACTS, "consistency", "exhaustive"):
    pytest.register_assert_rewrite(f"tests.storage.{module}")


@pytest.fixture(scope="session")
def model_cache() -> Path:
    """Folder with the compiled models: BIFOCAL_CACHE, or one kept between runs in this repository.

    Compiling takes the first run some minutes.
    """
    cache = Path(os.environ.get("BIFOCAL_CACHE") or Path(__file__).parents[1] / ".cache" / "bifocal")
    prepare(Settings(cache=cache))
    return cache


@pytest.fixture(scope="session")
def embedder(model_cache: Path) -> Iterator[Embedder]:
    """The default encoder, compiled."""
    loaded = load_embedder(Settings(cache=model_cache, runtime="openvino", max_queue=512))
    yield loaded
    loaded.close()
