from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.storage.rows import Rows
from app.storage.sqlite import SqliteRows
from tests.storage.rows_contract import RowsContract


class TestSqliteRows(RowsContract):
    @pytest.fixture
    def open_rows(self, tmp_path: Path) -> Iterator[Callable[[], Rows]]:
        with ExitStack() as opened:

            def open_rows() -> Rows:
                rows = SqliteRows(tmp_path / "store.db")
                opened.callback(rows.close)
                return rows

            yield open_rows
