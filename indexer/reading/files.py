"""One file into documents, in this process. `indexer.reading.process` does the same in a guarded one."""

from collections.abc import Callable

from app.domain import Document
from app.errors import BadFile
from indexer.reading.docx import read_docx
from indexer.reading.epub import read_epub
from indexer.reading.formats import kind_of
from indexer.reading.html import read_html
from indexer.reading.pdf import read_pdf
from indexer.reading.pptx import read_pptx
from indexer.reading.records import read_json, read_jsonl
from indexer.reading.tables import read_csv, read_sheets
from indexer.reading.text import read_markdown, read_text

READERS: dict[str, Callable[[str, bytes], list[Document]]] = {
    "text": read_text,
    "markdown": read_markdown,
    "html": read_html,
    "pdf": read_pdf,
    "docx": read_docx,
    "pptx": read_pptx,
    "sheets": read_sheets,
    "epub": read_epub,
    "csv": read_csv,
    "json": read_json,
    "jsonl": read_jsonl,
}


def read_file(name: str, body: bytes, *, media_type: str | None = None) -> list[Document]:
    """Read a file into documents with text: one, under the file's name, or one per record as
    `records.record_documents` says for JSON Lines and for tables with a text column.

    Args:
        name: as the client gave it: becomes the id, and its end tells the kind of file.
        media_type: tells the kind where the name does not.

    Raises:
        BadFile: not allowed, damaged, protected or without text; the message begins with the name.
    """
    try:
        return _read(name, body, media_type)
    except BadFile as error:
        raise BadFile(f"{name}: {error}", where=error.where) from error
    except MemoryError:
        raise
    except Exception as error:  # parsers raise anything at all on damaged files
        raise BadFile(f"{name}: it is damaged or not what its name says ({_described(error)})") from error


def _read(name: str, body: bytes, media_type: str | None) -> list[Document]:
    kind = kind_of(name, media_type)
    if not body:
        raise BadFile("the file is empty; send one with text")
    documents = [document for document in READERS[kind](name, body) if document.text.strip()]
    if not documents:
        raise BadFile("there is no text in it")
    return documents


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
