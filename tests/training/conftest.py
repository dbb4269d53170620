from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.training.tiny_bases import ARCHITECTURES, write_base


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by dividing their work, and very much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny encoders by architecture."""
    folder = tmp_path_factory.mktemp("bases")
    return {name: write_base(folder / name, name) for name in ARCHITECTURES}
