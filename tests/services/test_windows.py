"""A long text as one vector."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.activity import Activity
from app.engine.embedder import EmbedderDescription, Embeddings
from app.errors import BlankText
from app.services.windows import cut, encode_whole

MAX_TOKENS = 8


class CountingEmbedder:
    """Each character but white space is a token; a vector counts the letters a and b that fit."""

    fault: str | None = None
    activity = Activity()

    def __init__(self) -> None:
        self.description = EmbedderDescription("counts", "print", 2, MAX_TOKENS, "none", {})
        self.seen: list[str] = []

    def encode_documents(
        self, texts: Sequence[str], *, titles: Sequence[str | None] | None = None, truncate: bool = True
    ) -> Embeddings:
        for i, text in enumerate(texts):
            if not text.strip("\u200b "):
                raise BlankText("blank", where=("texts", i))
        tokens = [text.replace(" ", "") for text in texts]
        fitting = [t[:MAX_TOKENS] for t in tokens]
        self.seen += [f for t, f in zip(tokens, fitting, strict=True) if t == f]
        vectors = np.array([[f.count("a") + 1e-3, f.count("b")] for f in fitting], dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        n_tokens = np.array([len(t) for t in tokens], dtype=np.int32)
        return Embeddings(vectors, n_tokens, n_tokens > MAX_TOKENS, np.zeros(len(texts), np.float32))

    encode_queries = encode_documents

    def close(self) -> None:
        pass


def test_a_text_that_fits_is_one_window_with_the_encoders_own_vector() -> None:
    embedder = CountingEmbedder()
    whole = encode_whole("aab", embedder)
    assert (whole.n_windows, whole.n_tokens) == (1, 3)
    assert np.allclose(whole.vector, embedder.encode_documents(["aab"]).vectors[0])


def test_a_long_text_is_the_mean_of_its_windows_weighted_by_their_tokens() -> None:
    """Windows aaaa (4 tokens) and bbbbb (5): 4 * (1, 0) + 5 * (0, 1) = (4, 5), divided by its length."""
    whole = encode_whole("aaaa bbbbb", CountingEmbedder())
    assert (whole.n_windows, whole.n_tokens) == (2, 9)
    assert np.allclose(whole.vector, np.array([4, 5]) / np.sqrt(41), atol=1e-3)


@given(st.text(alphabet="ab \u200b", min_size=1, max_size=300))
def test_no_visible_character_of_a_text_is_left_out(text: str) -> None:
    embedder = CountingEmbedder()
    if not text.strip("\u200b "):
        with pytest.raises(BlankText):
            encode_whole(text, embedder)
        return
    whole = encode_whole(text, embedder)
    seen = "".join(embedder.seen)
    assert (seen.count("a"), seen.count("b")) == (text.count("a"), text.count("b"))
    assert np.isclose(np.linalg.norm(whole.vector), 1, atol=1e-5)


@given(st.text(alphabet="ab \n", max_size=100), st.integers(1, 10))
def test_pieces_joined_are_the_text_but_for_white_space(text: str, n_pieces: int) -> None:
    pieces = cut(text, n_pieces)
    assert len(pieces) <= n_pieces
    assert all(pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_word_without_spaces_is_cut_inside() -> None:
    assert cut("a" * 10, 2) == ["a" * 5, "a" * 5]
