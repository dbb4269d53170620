"""Judged queries from files in the layout of BEIR: queries as JSON lines, judgements as a table."""

import json
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from app.errors import BadFile


def read_judged(queries: IO[bytes], qrels: IO[bytes]) -> list[dict[str, Any]]:
    """Fields of JudgedQuery, of the queries that are judged, in the order of their file.

    Raises:
        BadFile: a line cannot be read; the message names file and line.
    """
    judged = _judgements(qrels)
    return [
        {"id": query_id, "text": text, "judgements": judged[query_id]}
        for query_id, text in _texts(queries)
        if query_id in judged
    ]


def _texts(queries: IO[bytes]) -> Iterator[tuple[str, str]]:
    for number, line in _lines(queries, "queries"):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            _refuse("queries", number, f"is no JSON: {error}")
        if not isinstance(fields, dict):
            _refuse("queries", number, "is no JSON object")
        for name in ("_id", "text"):
            if not isinstance(fields.get(name), str):
                _refuse("queries", number, f"{name!r} is missing or no string")
        yield fields["_id"], fields["text"]


def _judgements(qrels: IO[bytes]) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for number, line in _lines(qrels, "qrels"):
        values = line.split("\t")
        if len(values) != 3:
            _refuse(
                "qrels", number, f"has {len(values)} columns, not query-id, corpus-id and score between tabs"
            )
        query_id, document_id, written = values
        try:
            score = int(written)
        except ValueError:
            if number == 1:  # names of the columns
                continue
            _refuse("qrels", number, f"the score {written[:60]!a} is no whole number")
        if judged.setdefault(query_id, {}).setdefault(document_id, score) != score:
            _refuse("qrels", number, "the same query and document were judged otherwise before")
    return judged


def _lines(file: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of each line that is not blank."""
    for number, line in enumerate(file, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            _refuse(name, number, f"is not UTF-8: {error.reason}")
        if text.strip():
            yield number, text


def _refuse(name: str, line: int, what: str) -> NoReturn:
    raise BadFile(f"line {line} {what}", where=(name,))
