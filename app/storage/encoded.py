"""A document as the worker hands it to the rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Document, Passage

Vectors = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document ready to be stored."""

    document: Document
    content_hash: bytes
    """Of everything that decides the passages and vectors: id excluded, metadata excluded."""
    passages: Sequence[Passage]
    passage_vectors: Vectors  # (len(passages), d)
    document_vector: Vectors  # (d,)
    n_tokens: int
    unknown_share: float
