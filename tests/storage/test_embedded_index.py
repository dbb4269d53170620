from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.index import Index
from app.storage.rows import Rows
from app.storage.sqlite import SqliteRows
from tests.storage.index_contract import IndexContract


class TestEmbeddedIndex(IndexContract):
    @pytest.fixture
    def rows(self, tmp_path: Path) -> Iterator[Rows]:
        rows = SqliteRows(tmp_path / "store.db")
        yield rows
        rows.close()

    @pytest.fixture
    def open_index(self, tmp_path: Path) -> Iterator[Callable[[], Index]]:
        """Each with its own connection to the rows, as in another process."""
        with ExitStack() as opened:

            def open_index() -> Index:
                rows = SqliteRows(tmp_path / "store.db")
                opened.callback(rows.close)
                index = EmbeddedIndex(rows, tmp_path / "index", Settings(compact_tail=1))
                opened.callback(index.close)
                return index

            yield open_index
