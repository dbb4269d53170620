"""Texts of documents: kept once, cut into pieces so that a slice is read without the rest."""

import json
import sqlite3
from collections.abc import Mapping, Sequence

PIECE_CHARS = 8_192
"""Code points per piece: longer than nearly every passage, short enough to decode in microseconds."""


def insert_text(connection: sqlite3.Connection, document_key: int, text: str) -> None:
    connection.executemany(
        "INSERT INTO texts (document_key, start_char, piece) VALUES (?, ?, ?)",
        (
            (document_key, start, text[start : start + PIECE_CHARS].encode())
            for start in range(0, len(text), PIECE_CHARS)
        ),
    )


def whole_texts(connection: sqlite3.Connection, document_keys: Sequence[int]) -> Mapping[int, str]:
    pieces: dict[int, list[str]] = {key: [] for key in document_keys}
    for document_key, piece in connection.execute(
        "SELECT document_key, piece FROM texts WHERE document_key IN (SELECT value FROM json_each(?)) "
        "ORDER BY document_key, start_char",
        (json.dumps([*pieces]),),
    ):
        pieces[document_key].append(str(piece, "utf-8"))
    return {key: "".join(parts) for key, parts in pieces.items()}


def passage_texts(connection: sqlite3.Connection, passages: Sequence[sqlite3.Row]) -> Mapping[int, str]:
    """`text[start_char:end_char]` of passages given as (key, document_key, start_char, end_char, ...)."""
    pieces: dict[int, list[tuple[int, str]]] = {passage["key"]: [] for passage in passages}
    for key, start, piece in connection.execute(
        "SELECT p.key, t.start_char, t.piece FROM passages p JOIN texts t "
        "ON t.document_key = p.document_key AND t.start_char > p.start_char - ? "
        "AND t.start_char < p.end_char "
        "WHERE p.key IN (SELECT value FROM json_each(?)) ORDER BY p.key, t.start_char",
        (PIECE_CHARS, json.dumps([*pieces])),
    ):
        pieces[key].append((start, str(piece, "utf-8")))
    return {
        passage["key"]: _slice(pieces[passage["key"]], passage["start_char"], passage["end_char"])
        for passage in passages
    }


def _slice(pieces: Sequence[tuple[int, str]], start: int, end: int) -> str:
    """The document's `text[start:end]` out of consecutive pieces, each with its own start."""
    if not pieces:
        return ""
    first = pieces[0][0]
    return "".join(piece for _, piece in pieces)[start - first : end - first]
