"""Texts of documents: kept once, cut into pieces so that a slice is read without the rest."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

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


def slices(
    connection: sqlite3.Connection, document_key: int, spans: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """`text[start:end]` for each span of one document."""
    if not spans:
        return
    pieces = connection.execute(
        "SELECT start_char, piece FROM texts WHERE document_key = ? AND start_char > ? AND start_char < ? "
        "ORDER BY start_char",
        (document_key, min(start for start, _ in spans) - PIECE_CHARS, max(end for _, end in spans)),
    ).fetchall()
    first = pieces[0]["start_char"] if pieces else 0
    text = "".join(str(piece["piece"], "utf-8") for piece in pieces)
    for start, end in spans:
        yield text[start - first : end - first]
