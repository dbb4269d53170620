"""A database whose bytes were changed or cut: what is not read is not invented, and the error says damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import StorageDamaged
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write

TEXT = "A text about lighthouses. And about their keepers."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Sixty documents, all in the file: nothing is in the log."""
    path = tmp_path / "store.db"
    rows = SqliteRows(path)
    documents = [encoded(f"id{i}", f"{i} {TEXT}" * 20, metadata={"year": 1999}) for i in range(60)]
    write(rows, make_collection(rows), *documents, encoded("paged", TEXT, page_starts=(0, 17)))
    rows.close()
    return path


def replace(path: Path, old: bytes, new: bytes) -> None:
    assert len(old) == len(new)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def read_all(path: Path) -> None:
    rows = SqliteRows(path)
    try:
        collection = rows.collection("books")
        for head in rows.documents(collection.key, limit=1_000):
            rows.document(collection.key, head.id)
        for block in rows.vectors_after(collection.key, "passages", 0):
            rows.passages_by_key(block.keys.tolist())
        for _ in rows.texts_after(collection.key, 0):
            pass
        for job in rows.jobs():
            rows.outcomes(job.id)
    finally:
        rows.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"lighthouses", b"light\xffouses"),  # a text that is no UTF-8
        (b'{"year":1999}', b'{"year:1999"}'),  # metadata that are no JSON
        (b'{"year":1999}', b'{"ye\xffr":1999}'),  # and no UTF-8
        (b"[0, 17]", b"[0, 17,"),  # starts of pages
        (b'"max_tokens"', b'"mix_tokens"'),  # settings of the collection
        (b"CREATE TABLE documents", b"CREATE \xffABLE documents"),  # the schema
    ],
)
def test_changed_bytes_are_reported_as_damage(path: Path, old: bytes, new: bytes) -> None:
    replace(path, old, new)
    with pytest.raises(StorageDamaged, match="damaged"):
        read_all(path)


def half(n_bytes: int) -> int:
    return n_bytes // 2


def without_last_page(n_bytes: int) -> int:
    return n_bytes - 4096


def a_few_bytes(_: int) -> int:
    return 100


@pytest.mark.parametrize("length", [half, without_last_page, a_few_bytes])
def test_a_file_that_was_cut_short_is_reported_as_damage(path: Path, length: Callable[[int], int]) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: length(len(content))])
    with pytest.raises(StorageDamaged, match=r"store\.db"):
        read_all(path)
