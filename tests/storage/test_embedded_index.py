from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.embedded.dense import DenseIndex
from app.storage.index import Index
from app.storage.rows import Rows
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write
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


def test_words_stay_readable_however_often_a_worker_dies_between_a_base_and_their_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(compact_tail=1)
    with closing(SqliteRows(tmp_path / "store.db")) as rows:
        books = make_collection(rows)
        write(rows, books, encoded("kept", "kept words"), encoded("d", "first words"))
        with closing(EmbeddedIndex(rows, tmp_path / "index", settings)) as index:
            index.maintain(books)

        monkeypatch.setattr(DenseIndex, "maintain", publish_and_die(DenseIndex.maintain))
        for n in range(6):
            with closing(EmbeddedIndex(rows, tmp_path / "index", settings)) as worker:
                write(rows, books, encoded("d", f"revised words {n}"))
                worker.apply(books)  # as after every write
                with pytest.raises(KeyboardInterrupt):
                    worker.maintain(books)
            with closing(EmbeddedIndex(rows, tmp_path / "index", settings)) as reader:
                found = reader.matching(books, "words", depth=10)
            assert len(set(found.document_keys.tolist())) == 2


def publish_and_die(maintain: Callable[..., bool]) -> Callable[..., bool]:
    def die_after(*arguments: Any, **named: Any) -> bool:
        assert maintain(*arguments, **named)
        raise KeyboardInterrupt

    return die_after


def test_a_sweep_removes_folders_of_unknown_collections_and_nothing_else(tmp_path: Path) -> None:
    directory = tmp_path / "index"
    with (
        closing(SqliteRows(tmp_path / "store.db")) as rows,
        closing(EmbeddedIndex(rows, directory, Settings(compact_tail=1))) as index,
    ):
        assert index.sweep() == []  # there is no folder at all
        books = make_collection(rows)
        write(rows, books, encoded("d", "words"))
        index.apply(books)
        index.maintain(books)
        kept = sorted(path for path in directory.rglob("*"))
        left_over = directory / "77" / "words"
        left_over.mkdir(parents=True)
        (left_over / "file").write_text("x")
        (directory / "of someone else").mkdir()
        assert index.sweep() == [77]
        assert sorted(directory.rglob("*")) == sorted([*kept, directory / "of someone else"])
