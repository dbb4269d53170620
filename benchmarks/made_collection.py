"""A collection of any size out of real abstracts, through the ordinary write path.

    python benchmarks/made_collection.py --home DIR --n 100000

The abstracts of SciFact are ingested and encoded once. Then documents of one passage are made of their
passages: a real text with a few words taken from another one, and as its vector the mixture of both real
vectors, because encoding a million texts takes hours here. Everything else (job, splitting, rows, vectors,
words, publication) is what ingestion does with any document. Each document has a number from 0 to 999 in its
metadata, `part`, the same number every 1,000 documents, so that a filter can let any share of them through.
"""

import argparse
import gzip
import itertools
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, CollectionSettings, JobInput, JobKind
from app.engine.embedder import Embedder, Embeddings
from app.engine.models import find_bi_encoder, load_embedder, load_tokenizer
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader

DATA = Path(os.environ.get("BIFOCAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCIFACT = DATA / "retrieval" / "scifact"
SEED, MADE = "seed", "made"
SHARE_OF_THE_OTHER = 0.35
WORDS_OF_THE_OTHER = 6
N_WORDS = 110
MARK = re.compile(r"\((\d+)/(\d+)\)$")
N_PARTS = 1_000
JOB_INPUTS = 5_000
WORKER = "benchmark"


class MixtureEmbedder:
    """An `Embedder` that knows the vector of every text which `made_texts` makes, by its mark."""

    fault: str | None = None

    def __init__(self, real: Embedder, vectors: NDArray[np.float32]) -> None:
        self._real = real
        self.description = real.description
        self.activity = real.activity
        self._vectors = vectors  # (m, d)

    def encode_documents(
        self,
        texts: Sequence[str],
        *,
        titles: Sequence[str | None] | None = None,  # noqa: ARG002  made texts have none
        truncate: bool = True,  # noqa: ARG002  nor are they too long
    ) -> Embeddings:
        first, other = np.array([self._sources(text) for text in texts]).reshape(-1, 2).T
        mixed = (1 - SHARE_OF_THE_OTHER) * self._vectors[first] + SHARE_OF_THE_OTHER * self._vectors[other]
        mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
        n = len(texts)
        return Embeddings(mixed, np.full(n, 200, np.int32), np.zeros(n, np.bool_), np.zeros(n, np.float32))

    def encode_queries(self, texts: Sequence[str], *, truncate: bool = True) -> Embeddings:
        return self._real.encode_queries(texts, truncate=truncate)

    def close(self) -> None:
        pass

    def _sources(self, text: str) -> tuple[int, int]:
        """By the mark at its end; a text of very many tokens is split, and its beginning is without one."""
        found = MARK.search(text)
        if found:
            return int(found[1]), int(found[2])
        drawn = zlib.crc32(text.encode())
        return drawn % len(self._vectors), (drawn >> 8) % len(self._vectors)


def made_texts(passages: Sequence[str], n: int) -> Iterator[str]:
    rng = np.random.default_rng(0)
    words = [passage.split()[:N_WORDS] for passage in passages]
    for _ in range(n):
        first, other = rng.integers(0, len(passages), 2).tolist()
        at = int(rng.integers(0, len(words[first]) + 1))
        there = int(rng.integers(0, len(words[other]) + 1))
        edited = words[first][:at] + words[other][there : there + WORDS_OF_THE_OTHER] + words[first][at:]
        yield f"{' '.join(edited)} ({first}/{other})"


def made_documents(passages: Sequence[str], n: int) -> Iterator[dict[str, Any]]:
    for i, text in enumerate(made_texts(passages, n)):
        yield {"id": str(i), "text": text, "metadata": {"part": i % N_PARTS}}


def scifact_queries() -> list[str]:
    with (SCIFACT / "queries.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def scifact_documents() -> Iterator[dict[str, Any]]:
    path = next(SCIFACT.glob("corpus.jsonl*"))
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            document = json.loads(line)
            yield {"id": document["_id"], "title": document["title"], "text": document["text"]}


def build(home: Path, n: int) -> dict[str, float]:
    """Make what is not there yet; gives seconds per stage and documents per second."""
    settings = Settings(home=home)
    files = find_bi_encoder(settings.embedder, offline=settings.offline)
    tokenizer = load_tokenizer(files)
    home.mkdir(parents=True, exist_ok=True)
    rows = SqliteRows(home / "bifocal.db")
    index = EmbeddedIndex(rows, home / "indexes", settings)
    real = load_embedder(settings)
    reader = InputReader(settings, lambda _: [])

    def collection(name: str) -> Collection:
        return rows.create_collection(
            name, CollectionSettings(), fingerprint=files.fingerprint, model=files.name
        )[0]

    def ingest(into: Collection, documents: Iterator[dict[str, Any]], embedder: Embedder) -> None:
        ingestion = Ingestion(rows, index, DocumentEncoder(embedder, tokenizer), reader)
        while batch := [json.dumps(d).encode() for d in itertools.islice(documents, JOB_INPUTS)]:
            rows.submit_job(into.key, JobKind.DOCUMENTS, [JobInput(i, b) for i, b in enumerate(batch)])
            claimed = rows.claim_job(WORKER, lease_s=3600)
            assert claimed is not None
            ingestion.process(claimed, worker=WORKER)
            print(rows.collection_stats(into.key).n_documents, "documents", flush=True)

    began = time.perf_counter()
    seed, made = collection(SEED), collection(MADE)
    if not rows.collection_stats(seed.key).n_documents:
        ingest(seed, scifact_documents(), real)
    seeded = time.perf_counter()
    blocks = list(rows.vectors_after(seed.key, "passages", 0))
    vectors = np.concatenate([block.vectors for block in blocks]).astype(np.float32)
    texts = [row.text for block in rows.texts_after(seed.key, 0) for row in block]
    documents = made_documents(texts, n)
    if rows.collection_stats(made.key).n_documents >= n:
        documents = iter(())
    ingest(made, documents, MixtureEmbedder(real, vectors))
    written = time.perf_counter()
    index.maintain(made, progress=lambda stage, share: print(f"{stage} {share:.0%}", end="\r", flush=True))
    seconds = {
        "seed": seeded - began,
        "write": written - seeded,
        "maintain": time.perf_counter() - written,
    }
    for part in (index, rows, real):
        part.close()
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--n", type=int, default=100_000)
    arguments = parser.parse_args()
    print(json.dumps(build(arguments.home, arguments.n), indent=1))
