from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.indexer.stand_ins import Bench
from tests.services.library import Library


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    library.close()
