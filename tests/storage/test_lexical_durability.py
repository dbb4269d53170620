"""Whatever happens to the files, nothing that the rows have is lost and nothing else is returned."""

import logging
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from app.errors import StorageDamaged, StorageError
from app.storage.lexical import files
from app.storage.lexical.analysis import ANALYSIS_VERSION
from app.storage.lexical.reader import LexicalReader
from app.storage.lexical.writer import COMMIT_AFTER, LexicalWriter
from app.storage.sqlite import SqliteRows
from tests.storage.lexical_building import Library, open_library

Damage = Callable[[Path], None]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = open_library(tmp_path)
    yield library
    library.writer.close()
    library.rows.close()


def current(library: Library) -> Path:
    folder = files.current_folder(library.words)
    assert folder is not None
    return folder


def test_what_waits_for_a_commit_is_taken_from_the_rows_after_a_restart(library: Library) -> None:
    library.put({"a": "committed words", "b": "committed words"})
    library.writer.commit()
    library.put({"c": "waiting words"})
    library.delete("a")
    library.writer.apply()
    library.another_writer().apply()
    assert library.find("words", reader=library.another_reader()) == ["b", "c"]
    library.writer.commit()
    assert library.find("words", reader=library.another_reader()) == ["b", "c"]


def test_a_commit_that_the_rows_were_ahead_of_is_continued(library: Library) -> None:
    for round_ in range(3):
        library.put({f"{round_}-{i}": "word" for i in range(3)})
        if round_:
            library.delete(f"{round_ - 1}-0")
        library.another_writer().commit()
    assert library.find("word") == ["0-1", "0-2", "1-1", "1-2", "2-0", "2-1", "2-2"]


def test_committing_twice_changes_nothing(library: Library) -> None:
    library.put({"a": "word"})
    library.writer.commit()
    before = (current(library) / files.META).read_bytes()
    library.writer.commit()
    library.another_writer().commit()
    assert (current(library) / files.META).read_bytes() == before


def cut_short(folder: Path) -> None:
    path = next(folder.glob("*.idx"))
    path.write_bytes(path.read_bytes()[:-20])


def change_a_byte(folder: Path) -> None:
    path = next(folder.glob("*.fast"))
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def empty_a_file(folder: Path) -> None:
    next(folder.glob("*.fieldnorm")).write_bytes(b"")


def remove_a_file(folder: Path) -> None:
    next(folder.glob("*.term")).unlink()


def remove_deletions(folder: Path) -> None:
    next(folder.glob("*.del")).unlink()


def garble_meta(folder: Path) -> None:
    (folder / files.META).write_bytes(b"{")


def remove_meta(folder: Path) -> None:
    (folder / files.META).unlink()


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)


DAMAGES = [
    cut_short,
    change_a_byte,
    empty_a_file,
    remove_a_file,
    remove_deletions,
    garble_meta,
    remove_meta,
    remove_folder,
]


@pytest.fixture
def committed(library: Library) -> Library:
    library.put({f"d{i}": f"word w{i}" for i in range(COMMIT_AFTER)})
    library.writer.commit()
    library.delete("d3")
    library.writer.commit()
    library.writer.close()
    return library


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_built_anew_from_the_rows(
    committed: Library, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(current(committed))
    with caplog.at_level(logging.WARNING):
        committed.another_writer().apply()
    assert f"building a word index of {COMMIT_AFTER - 1} passages" in caplog.text
    assert committed.find("word", depth=3, reader=committed.another_reader()) == ["d0", "d1", "d2"]
    assert committed.find("w3") == []
    files.verify_files(current(committed))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_reader_refuses_damaged_files_until_they_are_replaced(committed: Library, damage: Damage) -> None:
    damage(current(committed))
    reader = committed.another_reader()
    with pytest.raises(StorageDamaged):
        committed.find("word", reader=reader)
    committed.another_writer().apply()
    assert committed.find("w7", reader=reader) == ["d7"]


def test_an_open_reader_goes_on_while_the_files_are_replaced(committed: Library) -> None:
    assert committed.find("w7") == ["d7"]
    (committed.words / files.CURRENT).unlink()
    committed.another_writer().apply()
    committed.put({"new": "w7"})
    assert set(committed.find("w7")) == {"d7", "new"}


@pytest.mark.parametrize("content", ["", "garbage", "1", "9999 1", "../../elsewhere 1", "1 0"])
def test_a_pointer_that_cannot_be_used_leads_to_building_anew(committed: Library, content: str) -> None:
    (committed.words / files.CURRENT).write_text(content)
    committed.another_writer().apply()
    assert committed.find("w7", reader=committed.another_reader()) == ["d7"]


def test_another_version_of_the_analysis_leads_to_building_anew(
    committed: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = current(committed)
    monkeypatch.setattr("app.storage.lexical.files.ANALYSIS_VERSION", ANALYSIS_VERSION + 1)
    committed.another_writer().apply()
    assert current(committed) != before
    assert not before.exists()
    assert committed.find("w7", reader=committed.another_reader()) == ["d7"]


def test_leftovers_are_removed_and_block_nothing(committed: Library) -> None:
    (committed.words / "77").mkdir()
    (committed.words / "77" / "half.idx").write_bytes(b"x")
    (committed.words / f"{files.CURRENT}.new").write_text("7")
    committed.another_writer().apply()
    assert not (committed.words / "77").exists()
    assert committed.find("w7") == ["d7"]


def test_a_building_that_was_interrupted_starts_over(
    committed: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (committed.words / files.CURRENT).unlink()
    monkeypatch.setattr("app.storage.lexical.writer.publish_folder", interrupt)
    with pytest.raises(KeyboardInterrupt):
        committed.another_writer().apply()
    monkeypatch.undo()
    committed.another_writer().apply()
    assert committed.find("w7", reader=committed.another_reader()) == ["d7"]
    assert len([path for path in committed.words.iterdir() if path.is_dir()]) == 1


def interrupt(folder: Path) -> None:
    raise KeyboardInterrupt


def test_forgotten_tombstones_lead_to_building_anew(committed: Library) -> None:
    position = files.Position(key=10**6, sequence=1)
    folder = files.next_folder(committed.words)
    index = files.create_index(folder)
    writer = index.writer(num_threads=1)
    files.write_position(writer, position)
    writer.commit()
    del writer, index
    files.publish_folder(folder)
    forget_tombstones(committed)
    committed.another_writer().apply()
    assert committed.find("w7", reader=committed.another_reader()) == ["d7"]


def forget_tombstones(library: Library) -> None:
    with library.rows._database.write() as connection:
        connection.execute("UPDATE collections SET tombstones_pruned = 2")


def test_a_second_writer_is_refused(committed: Library) -> None:
    committed.writer.commit()
    second = LexicalWriter(committed.words, committed.rows, committed.collection.key)
    with pytest.raises(StorageError, match="cannot be written"):
        second.apply()


def test_a_folder_that_cannot_be_written_is_named_and_recovers(library: Library) -> None:
    library.words.write_text("in the way")
    library.put({"a": "word"})
    with pytest.raises(StorageError, match=str(library.words)):
        library.writer.apply()
    library.words.unlink()
    library.writer.commit()
    assert library.find("word") == ["a"]


def commit_when_told(folder: Path, collection_key: int, orders: Connection) -> None:
    """A worker process: commits at each message and answers; at "wait" it leaves changes uncommitted."""
    rows = SqliteRows(folder / "rows.sqlite")
    writer = LexicalWriter(folder / "words", rows, collection_key)
    while order := orders.recv():
        writer.commit() if order == "commit" else writer.apply()
        orders.send("done")


@pytest.fixture
def worker(library: Library) -> Iterator[Callable[[str], None]]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=commit_when_told, args=(library.folder, library.collection.key, theirs), daemon=True
    )
    process.start()

    def tell(order: str) -> None:
        if order == "kill":
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        else:
            ours.send(order)
            assert ours.recv() == "done"

    yield tell
    process.kill()
    process.join()


def test_a_reader_sees_the_commits_of_another_process(
    library: Library, worker: Callable[[str], None]
) -> None:
    for round_ in range(4):
        library.put({f"d{round_}": "word"})
        worker("commit" if round_ % 2 else "apply")
        assert library.find("word") == [f"d{i}" for i in range(round_ + 1)]
    library.delete("d1")
    worker("commit")
    assert library.find("word") == ["d0", "d2", "d3"]
    assert position(library) == position_of_rows(library)


def test_a_killed_worker_leaves_files_that_the_next_continues(
    library: Library, worker: Callable[[str], None]
) -> None:
    library.put({"a": "word", "b": "word"})
    worker("commit")
    library.put({"c": "word"})
    library.delete("a")
    worker("apply")
    worker("kill")
    assert library.find("word", reader=library.another_reader()) == ["b", "c"]
    library.another_writer().commit()
    assert library.find("word") == ["b", "c"]
    assert position(library) == position_of_rows(library)


def position(library: Library) -> int:
    index = files.open_index(current(library))
    return files.read_position(index.searcher(), index.schema).key


def position_of_rows(library: Library) -> int:
    return library.rows.max_key(library.collection.key, "passages")


def test_readers_in_many_threads_agree_while_the_writer_commits(library: Library) -> None:
    library.put({f"d{i}": "word" for i in range(50)})
    library.writer.commit()
    reader = LexicalReader(library.words, library.rows, library.collection.key)
    results: list[list[str]] = []

    def search() -> None:
        results.extend(list(library.find("word", depth=100, reader=reader)) for _ in range(20))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(50, 60):
        library.put({f"d{i}": "word"})
        library.writer.commit()
    for thread in threads:
        thread.join()
    assert len(results) == 80
    assert all(found == [f"d{i}" for i in range(len(found))] and len(found) >= 50 for found in results)
