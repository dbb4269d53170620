from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    library.close()
