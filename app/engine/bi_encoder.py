"""The one `Embedder`: token accounting, batching and checks around whichever runtime runs the network."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.batching import BatchingOwner
from app.engine.embedder import EmbedderDescription, Embeddings
from app.engine.inputs import encoder_inputs
from app.engine.model_files import BiEncoderFiles
from app.engine.network import Network
from app.engine.shapes import padded
from app.engine.tokenizer import Ids, Tokenizer
from app.errors import BadVector
from app.settings import Settings

WARM_LENGTHS = (16, 24, 32, 48)
"""Of the inputs that most queries have."""


class BiEncoder:
    """Implements `app.engine.embedder.Embedder`.

    A text's vector does not depend on what else is in its batch, up to rounding: see the tests for how much.
    """

    def __init__(
        self,
        files: BiEncoderFiles,
        *,
        tokenizer: Tokenizer,
        network: Network,
        settings: Settings,
        farewell_s: float = 0.0,
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
        self._network = network
        self._owner: BatchingOwner[Ids, NDArray[np.float32]] = BatchingOwner(
            self._compute,
            n_lanes=network.n_lanes,
            max_batch_tokens=settings.max_batch_tokens,
            max_queue=settings.max_queue,
            warm_up=[np.full(n, files.pad_id, dtype=np.int32) for n in WARM_LENGTHS],
            call_limit_s=settings.model_limit_s,
            farewell_s=farewell_s,
        )

    @property
    def description(self) -> EmbedderDescription:
        return self._description

    @property
    def fault(self) -> str | None:
        return self._owner.fault

    @property
    def activity(self) -> Activity:
        return self._owner.activity

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
        rows = self._owner.encode(inputs.sequences)
        vectors = np.array(rows, dtype=np.float32).reshape(len(rows), self._files.dimensions)
        _check(vectors)
        return Embeddings(vectors, inputs.n_tokens, inputs.truncated, inputs.unknown_share)

    def _compute(self, sequences: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Pooled vectors (d,), each of length 1."""
        ids, mask = padded(sequences, pad_id=self._files.pad_id, max_tokens=self._files.max_tokens)
        return list(self._network.forward(ids, mask)[0])


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
