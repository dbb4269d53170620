"""The one `Embedder`: token accounting, batching and checks around whichever runtime runs the network."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.engine.batching import BatchingOwner
from app.engine.embedder import EmbedderDescription, Embeddings
from app.engine.inputs import encoder_inputs
from app.engine.model_files import BiEncoderFiles
from app.engine.tokenizer import Tokenizer
from app.errors import BadVector
from app.settings import Settings


class Network(Protocol):
    """A bi-encoder's network in some runtime."""

    runtime: str
    """With number format and version."""
    n_lanes: int
    """Threads that may call `forward` at the same time."""

    def forward(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        """Pooled vectors (n, d), each of length 1, of ids and mask (n, t)."""


class BiEncoder:
    """Implements `app.engine.embedder.Embedder`.

    A text's vector does not depend on what else is in its batch, up to rounding: see the tests for how much.
    """

    def __init__(
        self, files: BiEncoderFiles, *, tokenizer: Tokenizer, network: Network, settings: Settings
    ) -> None:
        self._files = files
        self._tokenizer = tokenizer
        self._description = EmbedderDescription(
            name=files.name,
            fingerprint=files.fingerprint,
            dimensions=files.dimensions,
            max_tokens=files.max_tokens,
            runtime=network.runtime,
            parts=files.parts,
        )
        self._owner = BatchingOwner(
            network.forward,
            n_lanes=network.n_lanes,
            dimensions=files.dimensions,
            pad_id=files.pad_id,
            max_tokens=files.max_tokens,
            max_batch_tokens=settings.max_batch_tokens,
            max_queue=settings.max_queue,
        )

    @property
    def description(self) -> EmbedderDescription:
        return self._description

    def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
        return self._encode(texts, None, prompt=self._files.query_prompt, truncate=truncate)

    def encode_documents(
        self, texts: Sequence[str], *, titles: Sequence[str | None] | None = None, truncate: bool = True
    ) -> Embeddings:
        return self._encode(texts, titles, prompt=self._files.document_prompt, truncate=truncate)

    def close(self) -> None:
        self._owner.close()

    def _encode(
        self, texts: Sequence[str], titles: Sequence[str | None] | None, *, prompt: str, truncate: bool
    ) -> Embeddings:
        inputs = encoder_inputs(
            texts,
            titles,
            tokenizer=self._tokenizer,
            prompt=prompt,
            max_tokens=self._files.max_tokens,
            truncate=truncate,
        )
        vectors = self._owner.encode(inputs.sequences)
        _check(vectors)
        return Embeddings(vectors, inputs.n_tokens, inputs.truncated, inputs.unknown_share)


def _check(vectors: NDArray[np.float32]) -> None:
    """
    Raises:
        BadVector: a row of (n, d) is not finite, or zero.
    """
    squares = np.einsum("nd,nd->n", vectors, vectors)  # (n,)
    bad = np.flatnonzero(~(np.isfinite(squares) & (squares > 0)))
    if len(bad):
        i = int(bad[0])
        raise BadVector(
            f"the model gave a vector for text {i} that is not finite or is zero", where=("texts", i)
        )
