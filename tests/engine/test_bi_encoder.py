"""The compiled encoder against sentence-transformers' own, and batches against single calls."""

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from app.engine.bi_encoder import BiEncoder
from app.engine.compiled import compiled_folder
from app.engine.embedder import Embedder
from app.engine.models import find_bi_encoder, load_tokenizer
from app.errors import BadVector, BlankText, TextTooLong
from app.settings import Settings
from indexer.calibration import calibration_texts

REAL_TEXTS = calibration_texts()[::10]
"""The texts that calibration leaves out."""
BATCH_TOLERANCE = 2e-3
"""Of a coordinate, a text in a batch against the same text alone."""


@pytest.fixture(scope="session")
def reference(packaged_folder: object) -> SentenceTransformer:
    return SentenceTransformer(str(packaged_folder), device="cpu", local_files_only=True)


def test_vectors_are_those_of_sentence_transformers(
    embedder: Embedder, reference: SentenceTransformer
) -> None:
    """Int8 costs a little: measured mean cosine 0.998, smallest 0.993 over SciFact and NFCorpus."""
    expected = reference.encode(REAL_TEXTS, normalize_embeddings=True)
    similarities = np.einsum("nd,nd->n", embedder.encode_documents(REAL_TEXTS).vectors, expected)
    assert similarities.min() >= 0.99
    assert similarities.mean() >= 0.996


def test_token_counts_are_those_of_the_published_tokenizer(
    embedder: Embedder, reference: SentenceTransformer
) -> None:
    texts = [*REAL_TEXTS, "naïve 😀", "日本語", "word " * 255, "word " * 254]
    expected = [len(ids) for ids in reference.tokenizer(texts, truncation=False)["input_ids"]]
    embeddings = embedder.encode_documents(texts)
    assert embeddings.n_tokens.tolist() == expected
    assert embeddings.truncated.tolist() == [n > 256 for n in expected]


def test_text_in_a_batch_gets_the_vector_it_gets_alone(embedder: Embedder) -> None:
    together = embedder.encode_documents(REAL_TEXTS).vectors
    alone = np.concatenate([embedder.encode_documents([text]).vectors for text in REAL_TEXTS])
    np.testing.assert_allclose(together, alone, atol=BATCH_TOLERANCE)


def test_concurrent_callers_get_the_vectors_they_get_alone(embedder: Embedder) -> None:
    alone = [embedder.encode_queries([text]).vectors for text in REAL_TEXTS]
    with ThreadPoolExecutor(16) as pool:
        for _ in range(3):
            together = pool.map(lambda text: embedder.encode_queries([text]).vectors, REAL_TEXTS)
            for expected, vector in zip(alone, together, strict=True):
                np.testing.assert_allclose(vector, expected, atol=BATCH_TOLERANCE)


def test_vectors_have_length_one(embedder: Embedder) -> None:
    lengths = np.linalg.norm(embedder.encode_documents(REAL_TEXTS).vectors, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    embeddings = embedder.encode_queries([])
    assert embeddings.vectors.shape == (0, 384)
    assert len(embeddings.n_tokens) == len(embeddings.truncated) == len(embeddings.unknown_share) == 0


@pytest.mark.parametrize("blank", ["", " \n\t", "\0", "\u200b\ufeff", "\ud800"])
def test_blank_text_is_refused_with_its_index(blank: str, embedder: Embedder) -> None:
    with pytest.raises(BlankText, match="text 1 is blank") as caught:
        embedder.encode_queries(["fine", blank, "fine too"])
    assert caught.value.where == ("texts", 1)


def test_too_long_text_is_refused_where_truncation_is(embedder: Embedder) -> None:
    with pytest.raises(TextTooLong, match="text 1 has 302 tokens, the model takes 256") as caught:
        embedder.encode_queries(["short", "word " * 300], truncate=False)
    assert (caught.value.n_tokens, caught.value.max_tokens) == (302, 256)
    assert caught.value.where == ("texts", 1)


def test_truncated_text_is_told_and_read_from_its_start(embedder: Embedder) -> None:
    whole, start = "word " * 300 + "end", "word " * 254
    embeddings = embedder.encode_queries([whole, start])
    assert embeddings.truncated.tolist() == [True, False]
    assert embeddings.n_tokens.tolist() == [303, 256]
    np.testing.assert_allclose(embeddings.vectors[0], embeddings.vectors[1], atol=BATCH_TOLERANCE)


def test_title_is_read_before_the_text(embedder: Embedder) -> None:
    texts, titles = ["It burns hydrogen.", "It was built in 1930."], ["The Sun", None]
    with_titles = embedder.encode_documents(texts, titles=titles)
    joined = embedder.encode_documents(["The Sun It burns hydrogen.", "It was built in 1930."])
    np.testing.assert_allclose(with_titles.vectors, joined.vectors, atol=BATCH_TOLERANCE)
    assert with_titles.n_tokens.tolist() == joined.n_tokens.tolist()


def test_long_title_leaves_three_quarters_to_the_text(embedder: Embedder) -> None:
    embeddings = embedder.encode_documents(["word " * 190, "word " * 191], titles=["title " * 500] * 2)
    assert embeddings.n_tokens.tolist() == [2 + 64 + 190, 2 + 64 + 191]
    assert embeddings.truncated.tolist() == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "nul \0 inside",
        "lone \ud800 surrogate",
        "😀👩‍👩‍👧",
        "?!…",
        "\u0301",
        "a" * 100_000,
        "one line " * 120_000,
        "tab\tand\r\nline",
        "\u202eright to left\u202c",
        "[SEP] [MASK]",
    ],
    ids=range(10),
)
def test_odd_text_gets_a_vector(text: str, embedder: Embedder) -> None:
    vectors = embedder.encode_documents([text]).vectors
    assert np.isfinite(vectors).all()
    assert np.linalg.norm(vectors) == pytest.approx(1, abs=1e-5)


def test_unknown_share_tells_how_much_the_model_cannot_read(embedder: Embedder) -> None:
    shares = embedder.encode_documents(["plain words", "see 😀 😀 here", "😀"]).unknown_share
    assert shares.tolist() == [0.0, 0.5, 1.0]


class FaultyNetwork:
    """Gives the vector `bad` for texts of more than 10 tokens."""

    runtime = "faulty"
    n_lanes = 1

    def __init__(self, bad: float) -> None:
        self._bad = bad

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        ids, mask = inputs
        vectors = np.zeros((len(ids), 384), dtype=np.float32)
        vectors[:, 0] = 1
        vectors[mask.sum(axis=1) > 10] = self._bad
        return [vectors]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_a_vector_that_is_not_finite_or_is_zero_is_refused_with_the_place_of_its_text(bad: float) -> None:
    files = find_bi_encoder(Settings().embedder)
    encoder = BiEncoder(
        files, tokenizer=load_tokenizer(files), network=FaultyNetwork(bad), settings=Settings()
    )
    try:
        assert len(encoder.encode_documents(["short", "brief"]).vectors) == 2
        with pytest.raises(BadVector, match="text 2") as refusal:
            encoder.encode_documents(["short", "brief", "word " * 20, "short"])
        assert refusal.value.where == ("texts", 2)
    finally:
        encoder.close()


def test_the_folder_of_a_compiled_model_is_that_of_what_it_was_made_from(tmp_path: Path) -> None:
    files = find_bi_encoder(Settings().embedder)
    others: list[dict[str, Any]] = [{"weights_digest": "0" * 64}, {"pooling": "cls"}, {"max_tokens": 128}]
    folders = {compiled_folder(tmp_path, dataclasses.replace(files, **other)) for other in others}
    assert len({compiled_folder(tmp_path, files), *folders}) == 4
