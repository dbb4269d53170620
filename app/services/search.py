"""Search: encode the query, rank by vector, show the rows behind the keys.

Two lenses on one collection. Asymmetric: a short query against passages; a document counts as its best
passage. Symmetric: a text against whole documents, both sides encoded alike.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, Hit, PassageHit, SearchResult, StoredPassage, View
from app.engine.embedder import Embedder, Embeddings
from app.errors import BlankText, FingerprintMismatch, TextTooLong
from app.services.windows import encode_whole
from app.storage.index import Candidates, Index
from app.storage.rows import Rows

DEPTH = 200
"""Candidates that are always looked at, so that the passages shown do not depend on `top_k`."""
DEPTH_PER_HIT = 4
TIE_DEPTH = 10_000
"""How deep documents of equal similarity are collected before the id decides between them."""
DECIMALS = 6
"""Of a similarity. The last bits depend on where a vector lies; without them equal texts are equal."""
ATTEMPTS = 10
"""Searches, while documents that were found are changed before their rows are read."""

Vector = NDArray[np.float32]


@dataclasses.dataclass(frozen=True, slots=True)
class _Query:
    vector: Vector  # (d,)
    n_tokens: int
    truncated: bool = False
    n_windows: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class _Ranking:
    hits: tuple[Hit, ...]
    generation: int
    is_stale: bool
    """A document was deleted or replaced between index and rows."""


class Search:
    """The two searches over one store with one bi-encoder. Safe to call from any thread."""

    def __init__(self, rows: Rows, index: Index, embedder: Embedder) -> None:
        self._rows = rows
        self._index = index
        self._embedder = embedder

    def asymmetric(
        self,
        collection_name: str,
        query: str,
        *,
        top_k: int = 10,
        passages_per_hit: int = 3,
        truncate: bool = True,
    ) -> SearchResult:
        """Documents whose passages answer a query, each with its best passages.

        Raises:
            CollectionNotFound, FingerprintMismatch, BlankText, Overloaded.
            TextTooLong: `truncate` is False and the query exceeds the encoder's limit.
        """
        collection = self._collection(collection_name)
        timer = _Timer()
        with _naming("query"):
            encoded = _single(self._embedder.encode_queries([query], truncate=truncate))
        timer.lap("encode")

        def rank() -> _Ranking:
            candidates = self._candidates(collection, encoded.vector, top_k=top_k, timer=timer)
            ranking = self._passage_hits(candidates, top_k=top_k, passages_per_hit=passages_per_hit)
            timer.lap("fetch")
            return ranking

        return self._result(encoded, _settled(rank), timer)

    def symmetric(
        self,
        collection_name: str,
        *,
        text: str | None = None,
        document_id: str | None = None,
        top_k: int = 10,
    ) -> SearchResult:
        """Documents like a text, or like a document, which is not among its own hits.

        A text longer than the encoder's limit is encoded in windows, whose mean stands for it, as passages
        do for a stored document.

        Raises:
            ValueError: not exactly one of text and document_id.
            CollectionNotFound, DocumentNotFound, FingerprintMismatch, BlankText, Overloaded.
        """
        if (text is None) == (document_id is None):
            raise ValueError("give either text or document_id")
        collection = self._collection(collection_name)
        timer = _Timer()
        excluded: int | None = None
        if text is not None:
            with _naming("text"):
                whole = encode_whole(text, self._embedder)
            encoded = _Query(whole.vector, whole.n_tokens, n_windows=whole.n_windows)
        else:
            assert document_id is not None
            excluded, encoded = self._stored_query(collection, document_id)
        timer.lap("encode")

        def rank() -> _Ranking:
            wanted = top_k + (excluded is not None)
            candidates = self._candidates(
                collection, encoded.vector, top_k=wanted, timer=timer, whole_documents=True
            )
            ranking = self._document_hits(candidates, top_k=top_k, excluded=excluded)
            timer.lap("fetch")
            return ranking

        return self._result(encoded, _settled(rank), timer)

    def _collection(self, name: str) -> Collection:
        """Raises FingerprintMismatch where its vectors were made by another model than the one that runs."""
        collection = self._rows.collection(name)
        running = self._embedder.description
        if collection.fingerprint != running.fingerprint:
            raise FingerprintMismatch(
                f"the collection {name!r} was made by {collection.model} ({collection.fingerprint[:12]}), "
                f"this service runs {running.name} ({running.fingerprint[:12]}); set BIFOCAL_EMBEDDER to the "
                "collection's model, or create another collection and send the documents again"
            )
        return collection

    def _stored_query(self, collection: Collection, document_id: str) -> tuple[int, _Query]:
        """Key and vector of a document. It may be replaced between the two reads, so look again."""
        while True:
            stored = self._rows.document(collection.key, document_id)
            vectors = self._rows.vectors_by_key("documents", [stored.key]).vectors
            if len(vectors):
                vector = vectors[0].astype(np.float32)
                return stored.key, _Query(vector / np.linalg.norm(vector), stored.n_tokens)

    def _candidates(
        self,
        collection: Collection,
        vector: Vector,
        *,
        top_k: int,
        timer: "_Timer",
        whole_documents: bool = False,
    ) -> Candidates:
        """Deep enough for `top_k` documents, or all there are."""
        view: View = "documents" if whole_documents else "passages"
        depth = max(DEPTH, DEPTH_PER_HIT * top_k)
        while True:
            found = self._index.nearest(collection, view, vector, depth=depth)
            found = dataclasses.replace(found, scores=np.round(found.scores, DECIMALS))
            if len(found.keys) < depth or _is_deep_enough(found, top_k):
                timer.lap("retrieve")
                return found
            depth *= 4

    def _passage_hits(self, found: Candidates, *, top_k: int, passages_per_hit: int) -> _Ranking:
        ranked = _best_documents(found, top_k)
        places: dict[int, list[int]] = {key: [] for key in ranked}
        for place, document_key in enumerate(found.document_keys.tolist()):
            if document_key in places and len(places[document_key]) < passages_per_hit:
                places[document_key].append(place)
        passages = self._rows.passages_by_key(
            [int(found.keys[place]) for of_document in places.values() for place in of_document]
        )
        hits = []
        for of_document in places.values():
            shown = [
                (passages[key], _similarity(found, place))
                for place in of_document
                if (key := int(found.keys[place])) in passages
            ]
            if shown:
                hits.append(_passage_hit(shown))
        return _Ranking(_in_order(hits)[:top_k], found.generation, is_stale=len(hits) < len(ranked))

    def _document_hits(self, found: Candidates, *, top_k: int, excluded: int | None) -> _Ranking:
        places = {key: place for place, key in enumerate(found.keys.tolist())}
        keys = [key for key in _best_documents(found, top_k + (excluded is not None)) if key != excluded]
        stored = self._rows.documents_by_key(keys)
        hits = [
            Hit(
                document_id=stored[key].document.id,
                title=stored[key].document.title,
                metadata=stored[key].document.metadata,
                similarity=_similarity(found, places[key]),
            )
            for key in keys
            if key in stored
        ]
        return _Ranking(_in_order(hits)[:top_k], found.generation, is_stale=len(hits) < len(keys))

    def _result(self, query: _Query, ranking: _Ranking, timer: "_Timer") -> SearchResult:
        return SearchResult(
            hits=ranking.hits,
            n_query_tokens=query.n_tokens,
            max_query_tokens=self._embedder.description.max_tokens,
            query_truncated=query.truncated,
            n_query_windows=query.n_windows,
            generation=ranking.generation,
            timings_ms=timer.timings_ms(),
        )


class _Timer:
    """Milliseconds per stage; a stage that runs twice counts twice."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps[stage] = self._laps.get(stage, 0.0) + 1000 * (now - self._last)
        self._last = now

    def timings_ms(self) -> dict[str, float]:
        total = 1000 * (time.perf_counter() - self._began)
        return {stage: round(ms, 3) for stage, ms in [*self._laps.items(), ("total", total)]}


@contextmanager
def _naming(field: str) -> Iterator[None]:
    """Refusals of the encoder speak of a list of texts; the caller sent one field."""
    try:
        yield
    except BlankText as error:
        raise BlankText("is blank: it needs at least one visible character", where=(field,)) from error
    except TextTooLong as error:
        raise TextTooLong(
            f"has {error.n_tokens} tokens, the model takes {error.max_tokens}; "
            "shorten it or allow truncation",
            n_tokens=error.n_tokens,
            max_tokens=error.max_tokens,
            where=(field,),
        ) from error


def _settled(rank: Callable[[], _Ranking]) -> _Ranking:
    """Rank again while what was found is changed meanwhile, so that deletions leave no gap in the hits."""
    ranking = rank()
    for _ in range(ATTEMPTS - 1):
        if not ranking.is_stale:
            break
        ranking = rank()
    return ranking


def _single(embeddings: Embeddings) -> _Query:
    return _Query(embeddings.vectors[0], int(embeddings.n_tokens[0]), bool(embeddings.truncated[0]))


def _is_deep_enough(found: Candidates, top_k: int) -> bool:
    """Whether the first `top_k` documents, and those equal to the last of them, are all among these."""
    _, first = np.unique(found.document_keys, return_index=True)
    if len(first) < top_k:
        return False
    last_similarity = found.scores[np.sort(first)[top_k - 1]]
    return bool(found.scores[-1] < last_similarity) or len(found.keys) >= TIE_DEPTH


def _best_documents(found: Candidates, top_k: int) -> Sequence[int]:
    """Keys of the first `top_k` documents and of those equal to the last of them, best first."""
    document_keys, first = np.unique(found.document_keys, return_index=True)
    order = np.argsort(first)
    document_keys, first = document_keys[order], first[order]
    if len(first) > top_k:
        n = int(np.sum(found.scores[first] >= found.scores[first[top_k - 1]]))
        document_keys = document_keys[:n]
    keys: list[int] = document_keys.tolist()
    return keys


def _similarity(found: Candidates, place: int) -> float:
    return round(float(found.scores[place]), DECIMALS)


def _in_order(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.similarity, hit.document_id)))


def _passage_hit(shown: Sequence[tuple[StoredPassage, float]]) -> Hit:
    best, similarity = shown[0]
    return Hit(
        document_id=best.document_id,
        title=best.title,
        metadata=best.metadata,
        similarity=similarity,
        passages=tuple(
            PassageHit(
                start=stored.passage.start,
                end=stored.passage.end,
                text=stored.text,
                page=stored.passage.page,
                similarity=each,
            )
            for stored, each in shown
        ),
    )
