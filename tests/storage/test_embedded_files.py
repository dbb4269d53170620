"""Files that are damaged, missing, left over, or replaced under a reader."""

import logging
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.domain import View
from app.errors import StorageDamaged, StorageError
from app.settings import Settings
from app.storage.embedded.dense import DenseIndex
from app.storage.rows import EncodedDocument, Generation
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write
from tests.storage.exhaustive import Truth, assert_is_top, exhaustive, unit_query

QUERY = unit_query(0)
VIEWS: Sequence[View] = ("passages", "documents")

COLUMNS = ["manifest.json", "keys.i64", "document_keys.i64", "vectors.f16"]


class Store:
    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self._opened = opened
        self.rows = self._rows(SqliteRows)
        self.books = make_collection(self.rows)

    def open_index(self, rows_class: type[SqliteRows] = SqliteRows) -> DenseIndex:
        """With its own handle on the rows, as another process has."""
        index = DenseIndex(self._rows(rows_class), self.folder / "index", Settings(compact_tail=1))
        self._opened.callback(index.close)
        return index

    def base(self, view: View = "passages") -> Path:
        (base,) = (self.folder / "index" / str(self.books.key)).glob(f"{view}-*")
        return base

    def write(self, *changes: EncodedDocument | str) -> None:
        write(self.rows, self.books, *changes)

    def truth(self, view: View = "passages") -> Truth:
        return exhaustive(self.rows, self.books, view, QUERY)

    def assert_finds_the_truth(self, *handles: DenseIndex, view: View = "passages") -> None:
        for handle in handles:
            assert_is_top(handle.nearest(self.books, view, QUERY, depth=100), self.truth(view), 100)

    def _rows(self, rows_class: type[SqliteRows]) -> SqliteRows:
        rows = rows_class(self.folder / "store.db")
        self._opened.callback(rows.close)
        return rows


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A collection with a base of each view, a tail, and deletions in both."""
    with ExitStack() as opened:
        store = Store(tmp_path, opened)
        store.write(*(encoded(f"d{i}", f"text number {i}") for i in range(20)))
        assert store.open_index().maintain(store.books)
        store.write(*(encoded(f"e{i}", f"other text {i}") for i in range(5)))
        store.write("d1", "d2", "e1")
        yield store


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, empty, flip, Path.unlink])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_damaged_file_is_noticed_and_searched_around_and_rebuilt(
    store: Store,
    caplog: pytest.LogCaptureFixture,
    name: str,
    damage: Callable[[Path], None],
) -> None:
    damage(store.base() / name)
    index = store.open_index()
    assert index.damages(store.books)
    with caplog.at_level(logging.ERROR):
        store.assert_finds_the_truth(index)
    assert "base 1 of passages" in caplog.text
    assert store.rows.generation(store.books.key, "passages") is None
    assert index.maintain(store.books)
    assert index.damages(store.books) == []
    for handle in (index, store.open_index()):
        assert handle.stats(store.books, "passages").generation > 1
        store.assert_finds_the_truth(handle)


def test_a_missing_folder_is_searched_around_and_rebuilt(store: Store) -> None:
    shutil.rmtree(store.folder / "index")
    index = store.open_index()
    store.assert_finds_the_truth(index)
    assert index.maintain(store.books)
    store.assert_finds_the_truth(index)


def test_a_base_that_cannot_be_opened_just_now_is_not_taken_for_damaged(store: Store) -> None:
    """No file can be opened while the process is at its limit; the rows' file is open already."""
    index = store.open_index()
    assert index.damages(store.books) == []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(StorageError, match="Too many open files") as raised:
            index.nearest(store.books, "passages", QUERY, depth=3)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not isinstance(raised.value, StorageDamaged)
    store.assert_finds_the_truth(index)
    assert index.stats(store.books, "passages").generation == 1


def test_damage_in_one_view_leaves_the_other_alone(store: Store) -> None:
    flip(store.base() / "keys.i64")
    index = store.open_index()
    index.nearest(store.books, "passages", QUERY, depth=3)
    assert index.stats(store.books, "documents").generation == 1


def test_a_reader_follows_a_retraction_and_the_base_after_it(store: Store) -> None:
    reader, writer = store.open_index(), store.open_index()
    reader.nearest(store.books, "passages", QUERY, depth=3)
    store.rows.retract_generation(store.books.key, "passages", 1)
    store.assert_finds_the_truth(reader)
    assert reader.stats(store.books, "passages").generation == 0
    assert writer.maintain(store.books)
    store.assert_finds_the_truth(reader)
    reader.close()  # waits for the base that is being opened
    store.assert_finds_the_truth(reader)
    assert reader.stats(store.books, "passages").generation == 2


def test_a_reader_opens_a_new_base_beside_its_searches(store: Store) -> None:
    """The first search after the publication is answered from the old base, whose folder is gone."""
    reader, writer = store.open_index(), store.open_index()
    reader.nearest(store.books, "passages", QUERY, depth=3)
    assert writer.maintain(store.books)
    store.assert_finds_the_truth(reader)
    while reader.stats(store.books, "passages").generation == 1:
        store.assert_finds_the_truth(reader)
    store.assert_finds_the_truth(reader)
    assert reader.stats(store.books, "passages").generation == 2


class RowsThatLag(SqliteRows):
    """Gives the generation as it was, once, as if a new one were published between row and file."""

    stale: Generation | None = None

    def generation(self, collection_key: int, view: View) -> Generation | None:
        stale, RowsThatLag.stale = RowsThatLag.stale, None
        return stale or super().generation(collection_key, view)


def test_a_base_replaced_before_it_was_opened_is_no_damage(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    stale = store.rows.generation(store.books.key, "passages")
    assert store.open_index().maintain(store.books)
    index = store.open_index(RowsThatLag)
    RowsThatLag.stale = stale
    store.assert_finds_the_truth(index)
    assert RowsThatLag.stale is None
    assert index.stats(store.books, "passages").generation == 2
    assert caplog.text == ""


def test_an_idle_reader_catches_up_after_its_tombstones_are_forgotten(store: Store) -> None:
    reader, writer = store.open_index(), store.open_index()
    for view in VIEWS:
        reader.nearest(store.books, view, QUERY, depth=3)
    for i in range(8):
        store.write(f"d{i + 3}", *(encoded(f"f{i}-{j}", f"yet another text {i} {j}") for j in range(9)))
        assert writer.maintain(store.books)
    assert not store.rows.tombstones_after(store.books.key, "passages", 1).is_complete
    for view in VIEWS:
        store.assert_finds_the_truth(reader, view=view)


def test_left_over_folders_neither_disturb_nor_stay(store: Store) -> None:
    parent = store.folder / "index" / str(store.books.key)
    for name in (".unfinished-passages-2", "passages-7", "documents-2"):
        (parent / name).mkdir()
        (parent / name / "vectors.f16").write_bytes(b"half")
    (parent / "other").mkdir()
    index = store.open_index()
    store.assert_finds_the_truth(index)
    assert index.maintain(store.books)
    assert sorted(path.name for path in parent.iterdir()) == ["documents-3", "other", "passages-8"]


def test_dropping_removes_the_folder(store: Store) -> None:
    store.open_index().drop(store.books.key)
    assert not (store.folder / "index" / str(store.books.key)).exists()


def test_a_folder_that_cannot_be_written_is_told_and_changes_nothing(store: Store) -> None:
    shutil.rmtree(store.folder / "index")
    (store.folder / "index").write_bytes(b"a file where a folder should be")
    index = store.open_index()
    with pytest.raises(StorageError, match="index"):
        index.maintain(store.books)
    store.assert_finds_the_truth(index)


MAINTAIN_UNTIL_KILLED = """
    import os, signal, sys
    from pathlib import Path
    from app.settings import Settings
    from app.storage.embedded.dense import DenseIndex
    from app.storage.sqlite import SqliteRows

    folder, event, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    rows = SqliteRows(folder / "store.db")
    seen = 0

    def kill_at(name, arguments):
        global seen
        if name == event:
            seen += 1
            if seen == n:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill_at)
    DenseIndex(rows, folder / "index", Settings(compact_tail=1)).maintain(rows.collection("books"))
"""


@pytest.mark.parametrize(
    ("event", "n"),
    [
        *(("open", n) for n in (5, 8, 12, 20, 25, 30)),
        ("os.mkdir", 1),
        ("os.rename", 1),
        ("os.rename", 2),
        ("shutil.rmtree", 1),
        ("shutil.rmtree", 2),
    ],
)
def test_killed_at_any_moment_maintenance_does_no_harm(store: Store, event: str, n: int) -> None:
    """Killed just before the nth call of a kind: mkdir, open, rename and removal divide it finely."""
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MAINTAIN_UNTIL_KILLED), str(store.folder), event, str(n)],
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    index = store.open_index()
    for view in VIEWS:
        store.assert_finds_the_truth(index, view=view)
    index.maintain(store.books)
    assert index.damages(store.books) == []
    names = sorted(path.name for path in (store.folder / "index" / str(store.books.key)).iterdir())
    assert [name.partition("-")[0] for name in names] == ["documents", "passages"]
    for view in VIEWS:
        store.assert_finds_the_truth(index, view=view)
