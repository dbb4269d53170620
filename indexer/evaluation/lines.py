"""Lines of JSON and of tab-separated values, plain or gzipped; whatever is wrong names file and line."""

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from app.errors import BadFile


def find_file(folder: Path, name: str) -> Path:
    """`name` in the folder, or `name`.gz.

    Raises:
        BadFile: there is neither.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise BadFile(f"{folder} has neither {name} nor {name}.gz")


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, JSON object) of each line that is not blank.

    Raises:
        BadFile: a line is no JSON object, or the file cannot be read.
    """
    for number, line in _lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            refuse(path, number, f"is no JSON: {error}")
        if not isinstance(value, dict):
            refuse(path, number, "is no JSON object")
        yield number, value


def columns(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """(line number, values between tabs) of each line that is not blank."""
    for number, line in _lines(path):
        yield number, line.split("\t")


def columns_or_blank(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """(line number, values between white space) of each line; no values for a blank one."""
    for number, line in _lines(path, with_blank=True):
        yield number, line.split()


def refuse(path: Path, line: int, what: str) -> NoReturn:
    raise BadFile(f"{path}, line {line}: {what}")


def _lines(path: Path, *, with_blank: bool = False) -> Iterator[tuple[int, str]]:
    """Line ends are those of files, not the other separators of Unicode, which texts may contain."""
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if with_blank or text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        refuse(path, number, f"is not UTF-8: {error}")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadFile(f"{path} is damaged after line {number}: {error}") from error
