"""The files of one collection's word index, and how to tell whether they can be trusted.

    <directory>/CURRENT      number of the folder in use and the version of the analysis that filled it
    <directory>/<number>/    Tantivy's files

How far the rows have been followed is a document inside the index: one commit changes both.
"""

import json
import mmap
import os
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import tantivy
from tantivy import Document, IndexWriter, Query, Searcher, TextAnalyzerBuilder, Tokenizer

from app.errors import StorageDamaged
from app.storage.lexical.analysis import ANALYSIS_VERSION

CURRENT = "CURRENT"
META = "meta.json"
MANAGED = ".managed.json"

FOOTER_MAGIC = 1337
TRAILER_BYTES = 8
"""A Tantivy file ends with a JSON footer, the footer's length and this number, both as 4 bytes."""

POSITION_KEY = 0
"""Key of the document that holds the position; passages have keys from 1."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far an index has followed the rows."""

    key: int = 0
    """All passages with keys up to this one are in it, unless they died."""
    sequence: int = 0
    """All tombstones up to this one were applied."""
    n_added: int = 0
    n_terms: int = 0
    """Of the passages ever added: their quotient is the mean length."""


def make_schema() -> tantivy.Schema:
    """Texts are neither stored nor given positions: the rows have them, and phrases are not asked for.

    Keys are signed: tantivy 0.27 deletes nothing by a term of an unsigned field.
    """
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("key", indexed=True, fast=True)
    builder.add_integer_field("document_key", indexed=True, fast=True)
    builder.add_text_field("terms", tokenizer_name="terms", index_option="freq")
    for name in Position.__slots__:
        builder.add_integer_field(f"position_{name}", stored=True)
    return builder.build()


def create_index(folder: Path) -> tantivy.Index:
    folder.mkdir(parents=True)
    return _with_tokenizer(tantivy.Index(make_schema(), str(folder)))


def open_index(folder: Path) -> tantivy.Index:
    """Raises StorageDamaged."""
    try:
        index = _with_tokenizer(tantivy.Index.open(str(folder)))
        index.config_reader("manual")
    except (OSError, ValueError) as error:
        raise StorageDamaged(f"the word index in {folder} cannot be opened: {error}") from error
    return index


def _with_tokenizer(index: tantivy.Index) -> tantivy.Index:
    """Texts arrive as terms with spaces between them."""
    index.register_tokenizer("terms", TextAnalyzerBuilder(Tokenizer.whitespace()).build())
    return index


def verify_files(folder: Path) -> None:
    """Compare every file of the last commit with its checksum.

    Raises:
        StorageDamaged: a file is missing, cut short or changed; the message names it.
    """
    try:
        segments = json.loads((folder / META).read_text())["segments"]
        names = sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError, KeyError) as error:
        raise StorageDamaged(f"the list of segments in {folder} is missing or damaged") from error
    for segment in segments:
        identity = segment["segment_id"].replace("-", "")
        components = {name.rsplit(".", 1)[1] for name in names if name.startswith(identity)}
        if missing := {"term", "idx", "fieldnorm", "fast", "store"} - components:
            raise StorageDamaged(f"{folder} lacks the {missing.pop()} file of segment {identity}")
        if segment["deletes"] and f"{identity}.{segment['deletes']['opstamp']}.del" not in names:
            raise StorageDamaged(f"{folder} lacks the deletions of segment {identity}")
        for name in names:
            if name.startswith(identity) and not _checksum_fits(folder / name):
                raise StorageDamaged(f"{folder / name} is not what was written")


def _checksum_fits(path: Path) -> bool:
    """CRC-32 of everything before the footer."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if int.from_bytes(content[-4:], "little") != FOOTER_MAGIC:
                return False
            footer_bytes = int.from_bytes(content[-TRAILER_BYTES:-4], "little")
            footer = json.loads(content[-TRAILER_BYTES - footer_bytes : -TRAILER_BYTES])
            with memoryview(content) as view, view[: -TRAILER_BYTES - footer_bytes] as body:
                return bool(zlib.crc32(body) == footer["crc"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_position(writer: IndexWriter, position: Position) -> None:
    """Replace it in the commit under way."""
    document = Document()
    document.add_integer("key", POSITION_KEY)
    document.add_integer("document_key", POSITION_KEY)
    for name in Position.__slots__:
        document.add_integer(f"position_{name}", getattr(position, name))
    writer.delete_documents_by_term("key", POSITION_KEY)
    writer.add_document(document)


def read_position(searcher: Searcher, schema: tantivy.Schema) -> Position:
    hits = searcher.search(Query.term_query(schema, "key", POSITION_KEY, index_option="basic"), 1).hits
    if not hits:
        return Position()
    stored = searcher.doc(hits[0][1])
    return Position(**{name: int(stored[f"position_{name}"][0]) for name in Position.__slots__})


def current_folder(directory: Path) -> Path | None:
    """The folder in use; None if there is none or another version of the analysis filled it."""
    try:
        number, version = (directory / CURRENT).read_text().split()
    except (OSError, ValueError):
        return None
    return directory / number if number.isdecimal() and version == str(ANALYSIS_VERSION) else None


def next_folder(directory: Path) -> Path:
    """A name not used yet, so that readers of an old folder never meet new files in it."""
    numbers = [int(path.name) for path in directory.iterdir() if path.name.isdecimal()]
    return directory / str(max(numbers, default=0) + 1)


def publish_folder(folder: Path) -> None:
    """Make it the one in use, durably, and remove all others. Open readers keep what they have mapped."""
    directory = folder.parent
    draft = directory / f"{CURRENT}.new"
    with draft.open("w") as file:
        file.write(f"{folder.name} {ANALYSIS_VERSION}")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory / CURRENT)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    remove_other_folders(folder)


def remove_other_folders(folder: Path) -> None:
    for path in folder.parent.iterdir():
        if path.is_dir() and path != folder:
            shutil.rmtree(path, ignore_errors=True)
