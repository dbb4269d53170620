"""Documents of a corpus as lists of sentences."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from app.errors import BadFile, InvalidInput
from indexer.borders import sentence_starts
from indexer.evaluation.lines import objects, refuse

Document = Sequence[str]
"""Its sentences, in order; none is blank."""

ENDINGS = (".txt", ".jsonl", ".json")


def read_documents(paths: Sequence[Path]) -> list[Document]:
    """Text files (a blank line ends a document), JSON lines with `text`, and files in SQuAD's layout, in
    which an article is a document; each may be gzipped, and folders are searched for them.

    Raises:
        InvalidInput: no path.
        BadFile: a path is missing, of another kind, or malformed; or there is no document.
    """
    if not paths:
        raise InvalidInput("--corpus is missing: files or folders of text")
    files = [file for path in paths for file in _files(path)]
    found = (sentences(text) for file in files for text in _texts(file))
    documents: list[Document] = [document for document in found if document]
    if not documents:
        raise BadFile(f"{', '.join(map(str, paths))}: there is no text")
    return documents


def sentences(text: str) -> list[str]:
    """
    >>> sentences("Dr. Who came. Nobody left!")
    ['Dr. Who came.', 'Nobody left!']
    """
    borders = [0, *sentence_starts(text).tolist(), len(text)]
    parts = (text[begin:end].strip() for begin, end in pairwise(borders))
    return [part for part in parts if part]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadFile(f"{path} does not exist")
    found = sorted(file for file in path.rglob("*") if _ending(file) in ENDINGS)
    if not found:
        raise BadFile(f"{path} has no file that ends in {', '.join(ENDINGS)}")
    return found


def _texts(file: Path) -> Iterator[str]:
    match _ending(file):
        case ".txt":
            yield from (part for part in _read(file).replace("\r\n", "\n").split("\n\n") if part.strip())
        case ".jsonl":
            for line, fields in objects(file):
                if not isinstance(fields.get("text"), str):
                    refuse(file, line, "'text' is missing or no string")
                yield fields["text"]
        case ".json":
            yield from _articles(file)
        case ending:
            raise BadFile(f"{file} ends in {ending!r}; a corpus is made of {', '.join(ENDINGS)}")


def _articles(file: Path) -> Iterator[str]:
    try:
        for article in json.loads(_read(file))["data"]:
            yield "\n".join(paragraph["context"] for paragraph in article["paragraphs"])
    except json.JSONDecodeError as error:
        raise BadFile(f"{file}, line {error.lineno}: is no JSON: {error.msg}") from error
    except (KeyError, TypeError) as error:
        raise BadFile(f"{file}, line 1: not in SQuAD's layout: {error!r}") from error


def _ending(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix


def _read(file: Path) -> str:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"{file} is not UTF-8: {error}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"{file} is damaged: {error}") from error
