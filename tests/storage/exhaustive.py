"""What an index should answer, computed from the rows with NumPy alone."""

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, View
from app.storage.index import Candidates
from app.storage.rows import Keys, Rows
from tests.storage.building import DIMENSIONS

TOLERANCE = 1e-3
"""Of a cosine, between implementations."""


@dataclass(frozen=True)
class Truth:
    """All live vectors, best first, ties by key."""

    keys: Keys
    document_keys: Keys
    scores: NDArray[np.float64]


def unit_query(seed: int, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    query = np.random.default_rng(seed).normal(size=dimensions)
    return (query / np.linalg.norm(query)).astype(np.float32)


def exhaustive(
    rows: Rows,
    collection: Collection,
    view: View,
    query: NDArray[np.float32],
    *,
    allowed: Container[int] | None = None,
) -> Truth:
    """`allowed` are document keys."""
    found: list[tuple[float, int, int]] = []
    for block in rows.vectors_after(collection.key, view, 0):
        scores = block.vectors.astype(np.float64) @ query.astype(np.float64)
        found += zip(-scores, block.keys, block.document_keys, strict=True)
    kept = sorted(row for row in found if allowed is None or row[2] in allowed)
    return Truth(
        np.array([key for _, key, _ in kept], np.int64),
        np.array([document_key for _, _, document_key in kept], np.int64),
        np.array([-negative for negative, _, _ in kept]),
    )


def assert_is_top(candidates: Candidates, truth: Truth, depth: int) -> None:
    """The exact ranking; the made vectors have no near-ties but true ones."""
    np.testing.assert_array_equal(candidates.keys, truth.keys[:depth])
    np.testing.assert_array_equal(candidates.document_keys, truth.document_keys[:depth])
    np.testing.assert_allclose(candidates.scores, truth.scores[:depth].clip(-1, 1), atol=TOLERANCE)
