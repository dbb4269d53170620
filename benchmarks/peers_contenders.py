"""The contenders of benchmarks/peers.py beside Bifocal. Runs in their environment, without this project.

    python benchmarks/peers_contenders.py NAME ENCODER CORPUS

Reads commands as JSON lines ({"command": "index" | "search" | "about"}) and answers each with one line. Every
contender is used as its documentation shows, on title and text joined; packages are imported when asked for.
"""
# ruff: noqa: PLC0415

import importlib.metadata
import json
import re
import sqlite3
import sys
import time
from pathlib import Path

TOP_K = 100
PACKAGES = ("txtai", "sentence-transformers", "torch", "faiss-cpu", "bm25s")


class Txtai:
    """Its hybrid index: vectors and BM25, scores added with equal weights."""

    def __init__(self, encoder, documents):
        from txtai import Embeddings

        self._documents = documents
        self._embeddings = Embeddings(path=encoder, hybrid=self.IS_HYBRID)

    IS_HYBRID = True

    def index(self):
        self._embeddings.index((document_id, text, None) for document_id, text in self._documents)

    def search(self, query, top_k):
        return [str(document_id) for document_id, _ in self._embeddings.search(query, top_k)]


class TxtaiDense(Txtai):
    """Its default."""

    IS_HYBRID = False


class SemanticSearch:
    """sentence_transformers.util.semantic_search over all embeddings."""

    def __init__(self, encoder, documents):
        from sentence_transformers import SentenceTransformer

        self._ids, self._texts = zip(*documents, strict=True)
        self._model = SentenceTransformer(encoder, device="cpu", local_files_only=True)

    def index(self):
        self._embeddings = self._model.encode(
            self._texts, convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False
        )

    def search(self, query, top_k):
        from sentence_transformers.util import dot_score, semantic_search

        vector = self._model.encode(query, convert_to_tensor=True, normalize_embeddings=True)
        hits = semantic_search(vector, self._embeddings, top_k=top_k, score_function=dot_score)[0]
        return [self._ids[hit["corpus_id"]] for hit in hits]


class FlatFaiss(SemanticSearch):
    """The same embeddings in an IndexFlatIP."""

    def __init__(self, encoder, documents):
        import faiss

        self._faiss = faiss
        super().__init__(encoder, documents)

    def index(self):
        vectors = self._model.encode(self._texts, normalize_embeddings=True, show_progress_bar=False)
        self._index = self._faiss.IndexFlatIP(vectors.shape[1])
        self._index.add(vectors)

    def search(self, query, top_k):
        vector = self._model.encode([query], normalize_embeddings=True)
        _, positions = self._index.search(vector, top_k)
        return [self._ids[position] for position in positions[0] if position >= 0]


class Bm25s:
    """With its English stop words, without stemming, as its README shows."""

    def __init__(self, _encoder, documents):
        import bm25s

        self._bm25s = bm25s
        self._ids, self._texts = zip(*documents, strict=True)

    def index(self):
        self._retriever = self._bm25s.BM25()
        tokens = self._bm25s.tokenize(list(self._texts), stopwords="en", show_progress=False)
        self._retriever.index(tokens, show_progress=False)

    def search(self, query, top_k):
        tokens = self._bm25s.tokenize(query, stopwords="en", show_progress=False)
        positions, _ = self._retriever.retrieve(
            tokens, k=min(top_k, len(self._ids)), show_progress=False, n_threads=1
        )
        return [self._ids[position] for position in positions[0]]


class Fts5:
    """SQLite's own full text, with Porter's stemmer; any word of the query may match."""

    def __init__(self, _encoder, documents):
        self._documents = documents
        self._connection = sqlite3.connect(":memory:")

    def index(self):
        self._connection.execute(
            "CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, text, tokenize='porter unicode61')"
        )
        self._connection.executemany("INSERT INTO passages VALUES (?, ?)", self._documents)
        self._connection.commit()

    def search(self, query, top_k):
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        found = self._connection.execute(
            "SELECT id FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?", (words, top_k)
        )
        return [document_id for (document_id,) in found]


CONTENDERS = {
    "txtai": Txtai,
    "txtai dense": TxtaiDense,
    "semantic_search": SemanticSearch,
    "flat FAISS": FlatFaiss,
    "bm25s": Bm25s,
    "SQLite FTS5": Fts5,
}


def resident_mib():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    raise RuntimeError("no VmRSS")


def versions():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main():
    name, encoder, corpus = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr  # what a package prints is no answer
    rows = [json.loads(line) for line in Path(corpus).read_text(encoding="utf-8").splitlines()]
    contender = CONTENDERS[name](
        encoder, [(row["id"], f"{row['title']} {row['text']}".strip()) for row in rows]
    )
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        if asked["command"] == "index":
            contender.index()
            answer = {"seconds": time.perf_counter() - began}
        elif asked["command"] == "search":
            ids = contender.search(asked["query"], asked["top_k"])
            answer = {"ms": 1000 * (time.perf_counter() - began), "ids": ids}
        else:
            answer = {"resident_mib": resident_mib(), "versions": versions()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
