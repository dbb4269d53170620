"""Python values as the tables keep them, refusing what no store can keep."""

import json
from typing import Any

import numpy as np

from app.domain import Metadata
from app.errors import BadDocument, BadVector, StorageDamaged
from app.storage.rows import Vectors

LENGTH_TOLERANCE = 0.01
"""float16 rounds a vector of length 1 to within 0.001 of it."""

STORED_VECTOR = np.dtype("<f2")


def to_utf8(text: str, *, what: str) -> bytes:
    """Raises BadDocument for a lone surrogate, which is no character and has no UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadDocument(
            f"{what} contains a lone surrogate at character {error.start}; "
            "only whole Unicode characters are allowed",
            where=(what,),
        ) from error


def metadata_to_json(metadata: Metadata) -> str:
    try:
        stored = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise BadDocument(
            f"metadata can hold strings, finite numbers, booleans, null and lists of them: {error}",
            where=("metadata",),
        ) from error
    to_utf8(stored, what="metadata")
    return stored


def from_json(stored: str) -> Any:
    """What a column holds. Raises StorageDamaged."""
    try:
        return json.loads(stored)
    except (TypeError, ValueError) as error:
        raise StorageDamaged(f"a row of the store is damaged: {error}") from error


def from_utf8(stored: bytes) -> str:
    """What a column holds. Raises StorageDamaged."""
    try:
        return str(stored, "utf-8")
    except (TypeError, ValueError) as error:
        raise StorageDamaged(f"a text in the store is damaged: {error}") from error


def printable(text: str | None) -> str | None:
    """A message or name with lone surrogates written out, so that reporting them cannot fail."""
    return None if text is None else text.encode(errors="backslashreplace").decode()


def checked_vectors(vectors: Vectors, *, what: str) -> Vectors:
    """(n, d) as stored. Raises BadVector for one that is not finite or not of length 1."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float32))  # (n,)
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= LENGTH_TOLERANCE))
    if wrong.size:
        raise BadVector(f"vector {wrong[0]} of {what} must have length 1 but has {lengths[wrong[0]]}")
    return np.ascontiguousarray(vectors, dtype=STORED_VECTOR)


def vectors_from_blobs(blobs: tuple[bytes, ...]) -> Vectors:
    """(n, d)"""
    return np.frombuffer(b"".join(blobs), dtype=STORED_VECTOR).reshape(len(blobs), -1)
