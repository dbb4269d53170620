"""Files that crash, hang or eat memory cost themselves only."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.errors import BadFile
from indexer.reading import ReaderProcess
from tests.indexer import made_files as made

LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="memory limits per process are enforced on Linux only"
)
LONG = b"a,b\n" * 10_000_000
"""Takes the HTML parser minutes."""
FAR = made.workbook({"s": {(0, 0): "a", (1_048_575, 16_383): "b"}})
"""A sheet of two cells whose rectangle has 17 billion."""


@pytest.fixture
def reader() -> Iterator[ReaderProcess]:
    with ReaderProcess(timeout_s=60, memory_bytes=2**30) as reader:
        yield reader


def test_documents_are_those_read_in_process(reader: ReaderProcess) -> None:
    slides = made.presentation([("One", "alpha", ""), ("Two", "beta \U0001f600", "")])
    [document] = reader.read("a.pptx", slides)
    assert document.text == "One\n\nalpha\n\nTwo\n\nbeta \U0001f600"
    assert document.page_starts == (0, 12)


def test_metadata_and_lone_surrogates_survive_the_way(reader: ReaderProcess) -> None:
    [document] = reader.read(
        "a", b'{"text": "x\\ud800", "n": 1.5, "l": ["a", null]}', media_type="application/jsonl"
    )
    assert (document.text, document.metadata) == ("x\ud800", {"n": 1.5, "l": ["a", None]})


def test_a_refused_file_is_told_and_the_next_is_read(reader: ReaderProcess) -> None:
    with pytest.raises(BadFile, match=r"a\.pdf: it is damaged or no PDF"):
        reader.read("a.pdf", b"no PDF")
    assert reader.read("a.txt", b"text")[0].text == "text"


@LINUX
def test_a_crash_is_told_and_the_next_file_is_read(reader: ReaderProcess) -> None:
    with pytest.raises(BadFile, match=r"far\.xlsx: reading it crashed the parser or took more memory"):
        reader.read("far.xlsx", FAR)
    assert reader.read("a.txt", b"text")[0].text == "text"


@LINUX
def test_memory_beyond_the_limit_is_told_and_the_next_file_is_read() -> None:
    with ReaderProcess(timeout_s=60, memory_bytes=2**28) as reader:
        with pytest.raises(BadFile, match=r"big\.csv: reading it"):
            reader.read("big.csv", b"a,b\n" * 10_000_000)
        assert reader.read("a.txt", b"text")[0].text == "text"


def test_a_file_that_takes_too_long_is_told_and_the_next_is_read() -> None:
    with ReaderProcess(timeout_s=2, memory_bytes=2**32) as reader:
        with pytest.raises(BadFile, match=r"long\.csv: reading it takes longer than the allowed 2 seconds"):
            reader.read("long.csv", LONG)
        assert reader.read("a.txt", b"text")[0].text == "text"


INTERRUPTED = """
import os, signal, threading
from indexer.reading import ReaderProcess

signal.signal(signal.SIGINT, lambda *_: None)
threading.Timer(1, lambda: os.killpg(0, signal.SIGINT)).start()
with ReaderProcess(timeout_s=2.5, memory_bytes=2**30) as reader:
    reader.read("long.csv", b"a,b\\n" + b"1,2\\n" * 3_000_000)
"""


@LINUX
def test_ctrl_c_leaves_the_file_that_is_being_read_alone() -> None:
    """A terminal interrupts the whole process group; the worker finishes its step before it ends."""
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "takes longer than the allowed 2.5 seconds" in ended.stderr


def test_a_name_is_data(reader: ReaderProcess) -> None:
    assert reader.read("a\n{}\0 '\ud800.txt", b"text")[0].id == "a\n{}\0 '\ud800.txt"


def test_a_closed_reader_starts_anew(reader: ReaderProcess) -> None:
    reader.read("a.txt", b"one")
    reader.close()
    assert reader.read("a.txt", b"two")[0].text == "two"


def test_the_process_loads_no_model_and_no_store() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, indexer.reading.child; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not {"torch", "openvino", "faiss", "tantivy", "numpy", "pydantic", "app.settings"} & set(loaded)


def test_the_parent_loads_no_parser() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, indexer.reading; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert not {"pypdfium2", "mammoth", "pptx", "selectolax", "python_calamine", "lxml"} & set(loaded)
