"""What the rows hold at one moment, for comparing derived indexes with it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain import Document, View
from app.storage.rows import Keys, Vectors
from app.storage.sqlite.examination import Examination
from app.storage.sqlite.feed import dead_keys
from app.storage.sqlite.values import vectors_from_blobs

LIVE = {
    "passages": "SELECT key FROM passage_vectors WHERE collection_key = ? AND key <= ? ORDER BY key",
    "documents": "SELECT key FROM document_vectors WHERE collection_key = ? AND key <= ? ORDER BY key",
}
VECTORS = {
    "passages": "SELECT v.key, v.document_key, v.vector FROM json_each(?) wanted "
    "JOIN passage_vectors v ON v.key = wanted.value ORDER BY v.key",
    "documents": "SELECT v.key, v.key, v.vector FROM json_each(?) wanted "
    "JOIN document_vectors v ON v.key = wanted.value ORDER BY v.key",
}
LARGEST_KEY = 2**63 - 1
BLOCK = 2_048
"""Vectors or, divided by 64, documents read in one snapshot: long ones would keep the log from shrinking."""


@dataclass(frozen=True, slots=True)
class LiveKeys:
    checksum: str | None
    """Of the current base at that moment."""
    live: Keys  # (n,), ascending
    dead: Keys  # (m,), what died since the given sequence
    is_complete: bool
    """False: what died since then is no longer recorded."""


@dataclass(frozen=True, slots=True)
class StoredVectors:
    keys: Keys  # (n,), ascending
    document_keys: Keys  # (n,)
    vectors: Vectors  # (n, d)


@dataclass(frozen=True, slots=True)
class StoredText:
    key: int
    id: str
    content_hash: bytes
    document: Document | None
    """None: its pieces do not make a text, or not as long a one as was stored."""
    slices: Sequence[tuple[int, int]]
    """(start, end) of its passages, in order."""


def live_keys(
    examination: Examination, collection_key: int, view: View, *, up_to: int, sequence: int = 0
) -> LiveKeys:
    with examination.snapshot() as connection:
        current = connection.execute(
            "SELECT checksum FROM generations WHERE collection_key = ? AND view = ? AND is_current",
            (collection_key, view),
        ).fetchone()
        live = [key for (key,) in connection.execute(LIVE[view], (collection_key, up_to))]
        tombstones = connection.execute(
            "SELECT document_key, first_passage_key, n_passages FROM tombstones "
            "WHERE collection_key = ? AND sequence > ?",
            (collection_key, sequence),
        ).fetchall()
        pruned = connection.execute(
            "SELECT tombstones_pruned FROM collections WHERE key = ?", (collection_key,)
        ).fetchone()
    return LiveKeys(
        checksum=None if current is None else current[0],
        live=np.array(live, np.int64),
        dead=dead_keys([tuple(row) for row in tombstones], view),
        is_complete=sequence == 0 or pruned is None or sequence >= pruned[0],
    )


def stored_vectors(
    examination: Examination, view: View, keys: Keys, *, dimensions: int | None = None
) -> Iterator[StoredVectors]:
    """Of those that are there and have as many dimensions as they should, in blocks."""
    for start in range(0, len(keys), BLOCK):
        wanted = json.dumps(keys[start : start + BLOCK].tolist())
        with examination.snapshot() as connection:
            found = [tuple(row) for row in connection.execute(VECTORS[view], (wanted,))]
        sizes = Counter(len(blob) for _, _, blob in found)
        n_bytes = 2 * dimensions if dimensions else max(sizes, key=sizes.__getitem__, default=0)
        found = [row for row in found if len(row[2]) == n_bytes]
        if found:
            own, owners, blobs = zip(*found, strict=True)
            yield StoredVectors(np.array(own), np.array(owners), vectors_from_blobs(blobs))


def stored_texts(examination: Examination, document_keys: Keys) -> Iterator[StoredText]:
    for start in range(0, len(document_keys), BLOCK // 64):
        wanted = json.dumps(document_keys[start : start + BLOCK // 64].tolist())
        with examination.snapshot() as connection:
            rows = connection.execute(
                "SELECT d.* FROM json_each(?) wanted JOIN documents d ON d.key = wanted.value", (wanted,)
            ).fetchall()
            pieces: dict[int, list[tuple[int, bytes]]] = {row["key"]: [] for row in rows}
            for key, start_char, piece in connection.execute(
                "SELECT t.document_key, t.start_char, t.piece FROM json_each(?) wanted "
                "JOIN texts t ON t.document_key = wanted.value ORDER BY t.document_key, t.start_char",
                (wanted,),
            ):
                pieces[key].append((start_char, piece))
            slices: dict[int, list[tuple[int, int]]] = {row["key"]: [] for row in rows}
            for key, start_char, end_char in connection.execute(
                "SELECT p.document_key, p.start_char, p.end_char FROM json_each(?) wanted "
                "JOIN passages p ON p.document_key = wanted.value ORDER BY p.key",
                (wanted,),
            ):
                slices[key].append((start_char, end_char))
        for row in rows:
            text = _joined(pieces[row["key"]], size_bytes=row["size_bytes"])
            document = text if text is None else _document(row["id"], text, row["title"], row["page_starts"])
            yield StoredText(row["key"], row["id"], row["content_hash"], document, slices[row["key"]])


def document_parts(
    examination: Examination, document_key: int, *, max_passages: int
) -> tuple[Keys, Vectors, Vectors] | None:
    """(n_tokens of each passage, vectors of the passages, its own vector (1, d)).

    None: it is gone, it has more passages than that, or something of it is missing.
    """
    with examination.snapshot() as connection:
        parts = connection.execute(
            "SELECT p.n_tokens, v.vector FROM passages p JOIN passage_vectors v ON v.key = p.key "
            "WHERE p.document_key = ? ORDER BY p.key LIMIT ?",
            (document_key, max_passages + 1),
        ).fetchall()
        own = connection.execute(
            "SELECT vector FROM document_vectors WHERE key = ?", (document_key,)
        ).fetchone()
    if not parts or len(parts) > max_passages or own is None:
        return None
    n_tokens, blobs = zip(*(tuple(part) for part in parts), strict=True)
    if {len(blob) for blob in blobs} != {len(own[0])}:
        return None  # said elsewhere
    return np.array(n_tokens, np.int64), vectors_from_blobs(blobs), vectors_from_blobs((own[0],))


def _joined(pieces: Sequence[tuple[int, bytes]], *, size_bytes: int) -> str | None:
    parts: list[str] = []
    n_chars = 0
    for start, piece in pieces:
        if start != n_chars:
            return None
        try:
            parts.append(str(piece, "utf-8"))
        except (UnicodeDecodeError, TypeError):
            return None
        n_chars += len(parts[-1])
    text = "".join(parts)
    return text if sum(len(piece) for _, piece in pieces) == size_bytes else None


def _document(document_id: str, text: str, title: str | None, page_starts: str) -> Document | None:
    try:
        return Document(document_id, text, title, page_starts=tuple(json.loads(page_starts)))
    except ValueError:
        return None
