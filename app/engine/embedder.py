"""The bi-encoder role: texts in, unit vectors out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity


@dataclass(frozen=True, slots=True)
class Embeddings:
    """n texts encoded by one role of one model."""

    vectors: NDArray[np.float32]  # (n, d), each of length 1, finite
    n_tokens: NDArray[np.int32]  # (n,), of the whole input before any truncation, special tokens included
    truncated: NDArray[np.bool_]  # (n,)
    unknown_share: NDArray[np.float32]  # (n,), share of unknown tokens among the non-special ones


@dataclass(frozen=True, slots=True)
class EmbedderDescription:
    name: str
    fingerprint: str
    """Digest over weights, tokenizer, pooling, normalisation, prompts and max_tokens. Not the runtime."""
    dimensions: int
    max_tokens: int
    runtime: str
    """"openvino-int8", "torch-float32", ... with its version."""
    parts: Mapping[str, str | int]
    """What the fingerprint is made of, for error messages and `/v1/models`."""


class Embedder(Protocol):
    """Safe to call from any thread: one owner runs the model and batches concurrent calls by tokens."""

    @property
    def description(self) -> EmbedderDescription: ...

    @property
    def fault(self) -> str | None:
        """Why it answers no more, while the process is about to end for it; None while it answers."""

    @property
    def activity(self) -> Activity: ...

    def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
        """Encode with the query prompt (asymmetric search).

        Raises:
            BlankText: a text has no visible character; `where` is its index.
            TextTooLong: `truncate` is False and a text exceeds max_tokens.
            BadVector: the model gave a vector that is not finite or zero.
            Overloaded: the queue is full.
            ModelUnavailable: it answers no more; see `fault`.
        """

    def encode_documents(
        self, texts: Sequence[str], *, titles: Sequence[str | None] | None = None, truncate: bool = True
    ) -> Embeddings:
        """Encode with the document prompt; a title is put before its text as context.

        Symmetric search uses this on both sides. Errors as `encode_queries`.
        """

    def close(self) -> None: ...
