"""Stand-ins that implement a seam, for tests whose subject is something else."""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.embedder import EmbedderDescription, Embeddings
from app.errors import BlankText

DIMENSIONS = 64
WORD = re.compile(r"\w+")


class WordHashEmbedder:
    """An `Embedder` without a model: sums one fixed random vector per word; shared words mean similarity."""

    fault: str | None = None
    activity = Activity()

    def __init__(self, *, fingerprint: str = "word-hash-1", name: str = "word-hash") -> None:
        self.description = EmbedderDescription(
            name=name,
            fingerprint=fingerprint,
            dimensions=DIMENSIONS,
            max_tokens=256,
            runtime="numpy",
            parts={"weights": fingerprint},
        )
        self.n_texts = 0
        """Texts encoded so far: shows that unchanged documents cost nothing."""

    def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
        return self._encode(texts)

    def encode_documents(
        self, texts: Sequence[str], *, titles: Sequence[str | None] | None = None, truncate: bool = True
    ) -> Embeddings:
        if titles is None:
            titles = [None] * len(texts)
        return self._encode([f"{title or ''} {text}" for title, text in zip(titles, texts, strict=True)])

    def close(self) -> None:
        pass

    def _encode(self, texts: Sequence[str]) -> Embeddings:
        for i, text in enumerate(texts):
            if not text.strip():
                raise BlankText("the text is blank", where=("texts", i))
        self.n_texts += len(texts)
        words = [WORD.findall(text.lower()) or ["?"] for text in texts]
        vectors = np.array([_sum_of_words(w) for w in words], dtype=np.float32).reshape(-1, DIMENSIONS)
        n_tokens = np.array([len(w) + 2 for w in words], dtype=np.int32)
        n = len(texts)
        return Embeddings(vectors, n_tokens, np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.float32))


def _sum_of_words(words: Sequence[str]) -> NDArray[np.float32]:
    total = np.zeros(DIMENSIONS, dtype=np.float64)
    for word in words:
        total += _vector_of_word(word)
    return (total / np.linalg.norm(total)).astype(np.float32)


@lru_cache(maxsize=100_000)
def _vector_of_word(word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIMENSIONS)
