"""Texts of documents: kept once, cut into pieces so that a slice is read without the rest."""

import json
import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.domain import Utf16
from app.storage.sqlite.values import from_utf8

LAST_OF_ONE_UNIT = 0xFFFF
"""Code points beyond take two units of UTF-16."""
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
    return "".join(from_utf8(piece) for (piece,) in pieces)


def text_lengths(connection: sqlite3.Connection, document_keys: Sequence[int]) -> Mapping[int, int]:
    """In code points. Of each text only the last piece is read."""
    last_pieces = connection.execute(
        "SELECT t.document_key, t.start_char, t.piece FROM json_each(?) wanted JOIN texts t "
        "ON t.document_key = wanted.value AND t.start_char = "
        "(SELECT max(start_char) FROM texts WHERE document_key = wanted.value)",
        (json.dumps([*document_keys]),),
    )
    return dict.fromkeys(document_keys, 0) | {
        key: start + len(from_utf8(piece)) for key, start, piece in last_pieces
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
        pieces[key].append((start, from_utf8(piece)))
    return {
        passage["key"]: _slice(pieces[passage["key"]], passage["start_char"], passage["end_char"])
        for passage in passages
    }


def passages_in_utf16(connection: sqlite3.Connection, passages: Sequence[sqlite3.Row]) -> Mapping[int, Utf16]:
    """Where the same passages are in UTF-16 code units. Of each text all before their ends is read."""
    ends: dict[int, int] = {}
    for passage in passages:
        key = passage["document_key"]
        ends[key] = max(ends.get(key, 0), passage["end_char"])
    units = {key: _utf16_places(_beginning(connection, key, end)) for key, end in ends.items()}
    return {
        passage["key"]: Utf16(
            int(units[passage["document_key"]][passage["start_char"]]),
            int(units[passage["document_key"]][passage["end_char"]]),
        )
        for passage in passages
    }


def _beginning(connection: sqlite3.Connection, document_key: int, end: int) -> str:
    """At least the first `end` code points of a text, or all that there are."""
    pieces = connection.execute(
        "SELECT piece FROM texts WHERE document_key = ? AND start_char < ? ORDER BY start_char",
        (document_key, end),
    )
    return "".join(from_utf8(piece) for (piece,) in pieces)


def _utf16_places(text: str) -> NDArray[np.int64]:
    """(n + 1,) the place of each code point, and of the end, in UTF-16 code units."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    places: NDArray[np.int64] = np.cumsum(np.concatenate([[0], 1 + (codes > LAST_OF_ONE_UNIT)]))
    return places


def _slice(pieces: Sequence[tuple[int, str]], start: int, end: int) -> str:
    """The document's `text[start:end]` out of consecutive pieces, each with its own start."""
    if not pieces:
        return ""
    first = pieces[0][0]
    return "".join(piece for _, piece in pieces)[start - first : end - first]
