"""The ranking against BM25 computed here, over all passages, from the published formula.

Passages are short enough for their lengths to be kept exactly. The document that holds the position counts
as a passage without words once there is a commit.
"""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.storage.lexical.analysis import document_terms
from tests.storage.lexical_building import Library, open_library

QUERIES = ["w0", "w1 w2", "w3 w30 w77", "w5 w5 w5 w9", "w111 w222 w333 w444", "nothing w60"]


def made_texts(n_texts: int) -> dict[str, str]:
    generator = np.random.default_rng(11)
    return {
        f"d{i:03}": " ".join(f"w{w}" for w in generator.zipf(1.2, generator.integers(1, 40)) % 500)
        for i in range(n_texts)
    }


def bm25(texts: dict[str, str], query: str, *, n_empty: int) -> dict[str, float]:
    """Sum over t of ln(1 + (N - n_t + 0.5) / (n_t + 0.5)) * 2.2 tf / (tf + 1.2 (0.25 + 0.75 len / mean))."""
    bags = {document_id: Counter(text.split()) for document_id, text in texts.items()}
    n_texts = len(bags) + n_empty
    mean_length = sum(bag.total() for bag in bags.values()) / n_texts
    scores: dict[str, float] = {}
    for word in query.split():
        holders = {document_id: bag for document_id, bag in bags.items() if word in bag}
        idf = math.log(1 + (n_texts - len(holders) + 0.5) / (len(holders) + 0.5))
        for document_id, bag in holders.items():
            normaliser = 1.2 * (1 - 0.75 + 0.75 * bag.total() / mean_length)
            gain = idf * bag[word] * 2.2 / (bag[word] + normaliser)
            scores[document_id] = scores.get(document_id, 0.0) + gain
    return scores


@pytest.fixture(scope="module", params=["in memory", "in the files"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = open_library(tmp_path_factory.mktemp("ranking"))
    library.put(made_texts(400))
    if request.param == "in the files":
        library.writer.commit()
    yield library
    library.writer.close()
    library.rows.close()


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_formula(library: Library, query: str) -> None:
    n_empty = 1 if any(library.words.glob("*/*.store")) else 0
    expected = bm25(made_texts(400), query, n_empty=n_empty)
    found = library.reader.match(query, depth=1000)
    ids = library.find(query, depth=1000)
    assert dict(zip(ids, found.scores.tolist(), strict=True)) == pytest.approx(expected, abs=2e-4)


def test_passages_in_memory_and_in_files_are_scored_alike(tmp_path: Path) -> None:
    library = open_library(tmp_path)
    texts = made_texts(400)
    library.put(texts)
    library.writer.commit()
    library.put({f"again {document_id}": text for document_id, text in texts.items()})
    for query in QUERIES:
        ids = library.find(query, depth=1000)
        scores = dict(zip(ids, library.reader.match(query, depth=1000).scores.tolist(), strict=True))
        twins = [document_id for document_id in ids if not document_id.startswith("again")]
        assert [scores[f"again {twin}"] for twin in twins] == pytest.approx(
            [scores[twin] for twin in twins], abs=2e-4
        )
    library.writer.close()
    library.rows.close()


def test_made_texts_are_terms_of_their_own() -> None:
    assert all(document_terms(text) == text.split() for text in made_texts(20).values())
