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


def whole_text(connection: sqlite3.Connection, document_key: int) -> str:
    pieces = connection.execute(
        "SELECT piece FROM texts WHERE document_key = ? ORDER BY start_char", (document_key,)
    )
    return "".join(str(piece, "utf-8") for (piece,) in pieces)


def text_lengths(connection: sqlite3.Connection, document_keys: Sequence[int]) -> Mapping[int, int]:
    """In code points. Of each text only the last piece is read."""
    last_pieces = connection.execute(
        "SELECT t.document_key, t.start_char, t.piece FROM json_each(?) wanted JOIN texts t "
        "ON t.document_key = wanted.value AND t.start_char = "
        "(SELECT max(start_char) FROM texts WHERE document_key = wanted.value)",
        (json.dumps([*document_keys]),),
    )
    return dict.fromkeys(document_keys, 0) | {
        key: start + len(str(piece, "utf-8")) for key, start, piece in last_pieces
    }


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
