"""A base above the exact limit: 16,000 clustered vectors of 32 dimensions, with a tail and deletions."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.domain import Collection, CollectionSettings, Document, IndexSettings, Passage
from app.settings import Settings
from app.storage.embedded import approximate
from app.storage.embedded.approximate import RESIDENT_BYTES, MappedVectors
from app.storage.embedded.dense import DenseIndex
from app.storage.embedded.masks import DocumentMask
from app.storage.rows import EncodedDocument
from app.storage.sqlite import SqliteRows
from tests.storage.building import make_collection, write
from tests.storage.exhaustive import TOLERANCE, Truth, assert_is_top, exhaustive

DIMENSIONS = 32
N_DOCUMENTS = 400
N_PASSAGES = 40
"""Per document."""

Vectors32 = NDArray[np.float32]


def unit(vectors: Vectors32) -> Vectors32:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def clustered(n_vectors: int, *, seed: int) -> Vectors32:
    """Around 100 centres, the same for all seeds."""
    centres = np.random.default_rng(0).normal(size=(100, DIMENSIONS))
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_vectors, DIMENSIONS))
    return unit((centres[rng.integers(0, 100, n_vectors)] + 0.6 * noise).astype(np.float32))


def document(i: int) -> EncodedDocument:
    vectors = clustered(N_PASSAGES + 1, seed=i + 1).astype(np.float16)
    return EncodedDocument(
        document=Document(f"d{i}", "x" * N_PASSAGES),
        content_hash=b"%d" % i,
        passages=[Passage(start, start + 1, 1) for start in range(N_PASSAGES)],
        passage_vectors=vectors[1:],
        document_vector=vectors[0],
        n_tokens=N_PASSAGES,
        unknown_share=0.0,
    )


class Large:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = SqliteRows(folder / "store.db")
        self.books: Collection = make_collection(self.rows)
        write(self.rows, self.books, *(document(i) for i in range(N_DOCUMENTS)))
        with_base = self.open_index()
        assert with_base.maintain(self.books)
        with_base.close()
        write(self.rows, self.books, *(document(N_DOCUMENTS + i) for i in range(5)), *("d7", "d8"))

    def open_index(self) -> DenseIndex:
        return DenseIndex(self.rows, self.folder / "index", Settings(compact_tail=1000, exact_limit=1000))

    def truth(self, query: Vectors32, allowed: set[int] | None = None) -> Truth:
        return exhaustive(self.rows, self.books, "passages", query, allowed=allowed)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    large = Large(tmp_path_factory.mktemp("large"))
    yield large
    large.rows.close()


@pytest.fixture(autouse=True)
def _few_are_scored_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that lists are probed in a collection small enough for tests."""
    monkeypatch.setattr(approximate, "EXACT_COUNT", 2_000)


@pytest.fixture
def index(large: Large) -> Iterator[DenseIndex]:
    index = large.open_index()
    yield index
    index.close()


QUERIES = clustered(40, seed=10_000)


def share_found(found: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    return float(np.isin(truth, found).mean())


def test_ten_nearest_are_nearly_always_found(large: Large, index: DenseIndex) -> None:
    found = [index.nearest(large.books, "passages", query, depth=10) for query in QUERIES]
    truths = [large.truth(query).keys[:10] for query in QUERIES]
    assert not any(candidates.is_exact for candidates in found)
    shares = [share_found(one.keys, truth) for one, truth in zip(found, truths, strict=True)]
    assert np.mean(shares) >= 0.97


def test_scores_are_exact_and_descend(large: Large, index: DenseIndex) -> None:
    for query in QUERIES[:10]:
        found = index.nearest(large.books, "passages", query, depth=50)
        truth = large.truth(query)
        expected = dict(zip(truth.keys.tolist(), truth.scores.tolist(), strict=True))
        np.testing.assert_allclose(found.scores, [expected[key] for key in found.keys], atol=TOLERANCE)
        assert (np.diff(found.scores) <= 0).all()


def test_statistics_tell_the_recall_measured_when_it_was_built(large: Large, index: DenseIndex) -> None:
    details = index.stats(large.books, "passages").details
    assert details["kind"] == "approximate"
    recall = details["recall_at_10"]
    assert isinstance(recall, float)
    assert 0.97 <= recall <= 1


@pytest.mark.parametrize("depth", [1, 1000, 15_900, 16_120, 20_000])
def test_any_depth_is_filled_while_there_are_matches(large: Large, index: DenseIndex, depth: int) -> None:
    n_live = (N_DOCUMENTS + 5 - 2) * N_PASSAGES
    found = index.nearest(large.books, "passages", QUERIES[0], depth=depth)
    assert found.keys.size == np.unique(found.keys).size == min(depth, n_live)


def test_few_matches_are_found_exactly(large: Large, index: DenseIndex) -> None:
    keys = [stored.key for stored in large.rows.documents(large.books.key, limit=1000)]
    for n_documents, is_exact in ((2_000 // N_PASSAGES, True), (2_000 // N_PASSAGES + 10, False)):
        mask = DocumentMask.of(keys[:n_documents])
        assert index.nearest(large.books, "passages", QUERIES[0], depth=10, allowed=mask).is_exact is is_exact


@pytest.mark.parametrize("share", [0.0, 0.0025, 0.01, 0.1, 0.5, 0.9, 1.0])
def test_filters_apply_before_ranking(large: Large, index: DenseIndex, share: float) -> None:
    keys = [stored.key for stored in large.rows.documents(large.books.key, limit=1000)]
    n_allowed = round(share * len(keys))
    allowed = set(np.random.default_rng(1).permutation(keys)[:n_allowed].tolist())
    mask = DocumentMask.of(allowed)
    shares = []
    for query in QUERIES[:20]:
        found = index.nearest(large.books, "passages", query, depth=60, allowed=mask)
        truth = large.truth(query, allowed)
        assert found.keys.size == min(60, len(allowed) * N_PASSAGES)
        assert set(found.document_keys.tolist()) <= allowed
        shares.append(share_found(found.keys, truth.keys[:10]) if allowed else 1.0)
        if found.is_exact:
            assert_is_top(found, truth, 60)
    assert np.mean(shares) >= 0.97


def test_few_matches_are_ranked_exactly(large: Large, index: DenseIndex) -> None:
    key = large.rows.document(large.books.key, "d5").key
    found = index.nearest(large.books, "passages", QUERIES[0], depth=10, allowed=DocumentMask.of([key]))
    assert found.is_exact
    assert_is_top(found, large.truth(QUERIES[0], {key}), 10)


def test_deleted_vectors_are_not_found(large: Large, index: DenseIndex) -> None:
    live = {stored.key for stored in large.rows.documents(large.books.key, limit=1000)}
    for i in (7, 8):
        for vector in document(i).passage_vectors[:5].astype(np.float32):
            found = index.nearest(large.books, "passages", unit(vector), depth=10)
            assert set(found.document_keys.tolist()) <= live


def test_similarities_are_exact(large: Large, index: DenseIndex) -> None:
    truth = large.truth(QUERIES[0])
    found = index.similarities(large.books, "passages", QUERIES[0], truth.keys[::50].tolist())
    np.testing.assert_allclose(found, truth.scores[::50], atol=TOLERANCE)


def test_training_is_repeated_when_a_collection_has_doubled(tmp_path: Path) -> None:
    rows = SqliteRows(tmp_path / "store.db")
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=1, exact_limit=1000))
    books = make_collection(rows)
    n_trained = []
    for start, end in [(0, 50), (50, 80), (80, 101)]:
        write(rows, books, *(document(i) for i in range(start, end)))
        assert index.maintain(books)
        n_trained.append(index.stats(books, "passages").details["n_trained"])
        found = index.nearest(books, "passages", QUERIES[0], depth=20)
        assert_is_top(found, exhaustive(rows, books, "passages", QUERIES[0]), 20)
    rows.close()
    assert n_trained == [50 * N_PASSAGES, 50 * N_PASSAGES, 101 * N_PASSAGES]


@pytest.mark.parametrize("n_documents", [1, 24, 26])
def test_a_small_collection_is_exact_whatever_the_limit(tmp_path: Path, n_documents: int) -> None:
    """1,000 vectors are the least that can be approximated."""
    rows = SqliteRows(tmp_path / "store.db")
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=1, exact_limit=0))
    books = make_collection(rows)
    write(rows, books, *(document(i) for i in range(n_documents)))
    assert index.maintain(books)
    is_exact = index.stats(books, "passages").details["kind"] == "exact"
    found = index.nearest(books, "passages", QUERIES[0], depth=20)
    assert_is_top(found, exhaustive(rows, books, "passages", QUERIES[0]), 20)
    rows.close()
    assert is_exact == (n_documents * N_PASSAGES <= 1000)


@pytest.mark.parametrize(("of_collection", "kind"), [(None, "exact"), (0, "approximate")])
def test_the_limit_of_a_collection_goes_before_that_of_the_service(
    tmp_path: Path, of_collection: int | None, kind: str
) -> None:
    rows = SqliteRows(tmp_path / "store.db")
    index = DenseIndex(rows, tmp_path / "index", Settings(compact_tail=1, exact_limit=10**6))
    settings = CollectionSettings(index=IndexSettings(of_collection))
    books, _ = rows.create_collection("books", settings, fingerprint="print", model="model")
    write(rows, books, *(document(i) for i in range(26)))
    assert index.maintain(books)
    found = index.stats(books, "passages").details["kind"]
    rows.close()
    assert found == kind


@pytest.mark.parametrize("name", ["candidates.faiss", "vectors.f16"])
def test_every_flipped_bit_is_found_by_a_full_check(large: Large, index: DenseIndex, name: str) -> None:
    assert index.damages(large.books) == []
    (base,) = (large.folder / "index" / str(large.books.key)).glob("passages-*")
    intact = (base / name).read_bytes()
    flipped = bytearray(intact)
    flipped[len(flipped) // 2] ^= 1
    (base / name).write_bytes(flipped)
    (damage,) = index.damages(large.books)
    (base / name).write_bytes(intact)
    assert name in damage


def test_pages_given_back_read_the_same(tmp_path: Path) -> None:
    """A file larger than what is kept resident, all but its first vectors being a hole."""
    vectors = clustered(1000, seed=0).astype(np.float16)
    n_vectors = RESIDENT_BYTES // (2 * DIMENSIONS) + 777
    with (tmp_path / "vectors").open("wb") as file:
        file.write(vectors.tobytes())
        file.truncate(n_vectors * 2 * DIMENSIONS)
    mapped = MappedVectors(tmp_path / "vectors", n_vectors=n_vectors, dimensions=DIMENSIONS)
    positions = np.append(np.arange(1000), n_vectors - 1)
    for _ in range(20):
        taken = mapped.take(positions)
        np.testing.assert_array_equal(taken[:-1], vectors)
        assert not taken[-1].any()


def test_reading_a_large_file_keeps_little_of_it_in_memory(tmp_path: Path) -> None:
    """Twice as large as what is kept, read through more than once."""
    n_vectors = 2 * RESIDENT_BYTES // (2 * DIMENSIONS)
    with (tmp_path / "vectors").open("wb") as file:
        file.truncate(n_vectors * 2 * DIMENSIONS)
    mapped = MappedVectors(tmp_path / "vectors", n_vectors=n_vectors, dimensions=DIMENSIONS)
    before = mapped_bytes(tmp_path / "vectors")
    largest = 0
    for positions in np.random.default_rng(0).integers(0, n_vectors, (60, 400)):
        mapped.take(positions)
        largest = max(largest, mapped_bytes(tmp_path / "vectors"))
    assert before == 0
    assert 0 < largest <= RESIDENT_BYTES * 1.1


def mapped_bytes(path: Path) -> int:
    """How much of a file this process has in memory, by Linux's own account."""
    areas = Path("/proc/self/smaps").read_text().split(str(path))[1:]
    return sum(1024 * int(re.findall(r"^Rss: +(\d+) kB", area, re.MULTILINE)[0]) for area in areas)
