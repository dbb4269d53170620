"""Search: encode the query, rank, show the rows behind the keys.

Two lenses on one collection. Asymmetric: a short query against passages, by meaning, by words or by both; a
document counts as its best passage. Symmetric: a text against whole documents, both sides encoded alike.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from app.domain import Collection, Fusion, Hit, Mode, PassageHit, SearchResult, StoredPassage, Total
from app.engine.embedder import Embedder, Embeddings
from app.engine.inputs import is_blank
from app.errors import BlankText, FingerprintMismatch, TextTooLong
from app.filters import Filter
from app.services.candidates import DECIMALS, Retrieved, Retriever, Scored, Vector
from app.services.windows import encode_whole
from app.storage.index import Candidates, Index
from app.storage.rows import Keys, Rows

TIE_DEPTH = 10_000
"""How deep documents of equal similarity are collected before the id decides between them."""
WITHOUT_WORDS = (
    "ranked by meaning alone, as in dense mode: the word index is damaged, and is searched again when the "
    "worker has built it anew"
)
ATTEMPTS = 10
"""Searches, while documents that were found are changed before their rows are read."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Query:
    vector: Vector | None  # (d,); None where the query was not encoded
    n_tokens: int
    truncated: bool = False
    n_windows: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class _Ranking:
    hits: tuple[Hit, ...]
    total: Total
    generation: int
    is_exact: bool
    is_stale: bool
    """A document was deleted or replaced between index and rows."""
    notices: tuple[str, ...] = ()


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
        mode: Mode = "hybrid",
        fusion: Fusion | None = None,
        condition: Filter | None = None,
    ) -> SearchResult:
        """Documents whose passages answer a query, each with its best passages.

        Documents whose metadata do not satisfy the condition are treated as if they were not there. Without
        `fusion`, that of the collection's settings counts. Lexical search does not encode the query, so the
        model, its limit and its fingerprint do not matter.

        Raises:
            CollectionNotFound, FingerprintMismatch, BlankText, Overloaded.
            TextTooLong: `truncate` is False and the query exceeds the encoder's limit.
        """
        timer = _Timer()
        if mode == "lexical":
            collection = self._rows.collection(collection_name)
            encoded = _unencoded(query)
        else:
            collection = self._collection(collection_name)
            with _naming("query"):
                encoded = _single(self._embedder.encode_queries([query], truncate=truncate))
            timer.lap("encode")
        fusion = fusion or collection.search.fusion
        retriever = Retriever(self._index, collection, query, encoded.vector, mode=mode, fusion=fusion)

        def rank(among: Keys | None) -> _Ranking:
            retrieved = retriever.retrieve(top_k, among=among)
            timer.lap("retrieve")
            total = retrieved.total or self._all_documents(collection, among)
            ranking = self._passage_hits(retrieved, total, top_k=top_k, passages_per_hit=passages_per_hit)
            timer.lap("fetch")
            notices = () if retrieved.mode == mode else (WITHOUT_WORDS,)
            return dataclasses.replace(ranking, notices=notices)

        return self._result(encoded, _settled(self._among(collection, condition, rank, timer)), timer)

    def symmetric(
        self,
        collection_name: str,
        *,
        text: str | None = None,
        document_id: str | None = None,
        top_k: int = 10,
        condition: Filter | None = None,
    ) -> SearchResult:
        """Documents like a text, or like a document, which is not among its own hits.

        Documents whose metadata do not satisfy the condition are treated as if they were not there.

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

        def rank(among: Keys | None) -> _Ranking:
            wanted = top_k + (excluded is not None)
            candidates = self._nearest_documents(collection, encoded.vector, top_k=wanted, among=among)
            timer.lap("retrieve")
            total = self._all_documents(collection, among, excluded=excluded)
            ranking = self._document_hits(candidates, total, top_k=top_k, excluded=excluded)
            timer.lap("fetch")
            return ranking

        return self._result(encoded, _settled(self._among(collection, condition, rank, timer)), timer)

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

    def _among(
        self,
        collection: Collection,
        condition: Filter | None,
        rank: Callable[[Keys | None], _Ranking],
        timer: "_Timer",
    ) -> Callable[[], _Ranking]:
        """Rank the documents that satisfy the condition. Stale if they changed meanwhile: a new revision of
        a document has another key, and was not among those that were let through."""
        if condition is None:
            return lambda: rank(None)

        def rank_among() -> _Ranking:
            among = self._rows.matching_documents(collection.key, condition)
            timer.lap("filter")
            ranking = rank(among)
            after = self._rows.matching_documents(collection.key, condition)
            has_changed = after is not among and not np.array_equal(after, among)
            return dataclasses.replace(ranking, is_stale=ranking.is_stale or has_changed)

        return rank_among

    def _all_documents(
        self, collection: Collection, among: Keys | None, *, excluded: int | None = None
    ) -> Total:
        """That are let through, without the excluded one."""
        if among is None:
            n_documents = self._rows.collection_stats(collection.key).n_documents
            return Total(n_documents - (excluded is not None), is_exact=True)
        return Total(len(among) - (excluded in among), is_exact=True)

    def _nearest_documents(
        self, collection: Collection, vector: Vector | None, *, top_k: int, among: Keys | None
    ) -> Candidates:
        """At least `top_k` and whoever ties with the last of them, or all there are."""
        assert vector is not None
        depth = top_k + 1
        while True:
            found = self._index.nearest(collection, "documents", vector, depth=depth, documents=among)
            found = dataclasses.replace(found, scores=np.round(found.scores, DECIMALS))
            is_all = len(found.keys) < depth
            if is_all or found.scores[-1] < found.scores[top_k - 1] or depth >= TIE_DEPTH:
                return found
            depth *= 4

    def _passage_hits(
        self, retrieved: Retrieved, total: Total, *, top_k: int, passages_per_hit: int
    ) -> _Ranking:
        documents, passages = retrieved.documents, retrieved.passages
        places: dict[int, list[int]] = {key: [] for key in documents.keys.tolist()}
        for place, document_key in enumerate(passages.document_keys.tolist()):
            if document_key in places and len(places[document_key]) < passages_per_hit:
                places[document_key].append(place)
        stored = self._rows.passages_by_key(
            [int(passages.keys[place]) for of_document in places.values() for place in of_document]
        )
        hits = []
        for at, of_document in enumerate(places.values()):
            shown = [
                (stored[key], _passage_hit(stored[key], passages, place))
                for place in of_document
                if (key := int(passages.keys[place])) in stored
            ]
            if shown:
                owner = shown[0][0]
                hits.append(
                    Hit(
                        document_id=owner.document_id,
                        title=owner.title,
                        metadata=owner.metadata,
                        score=float(documents.score[at]),
                        similarity=_known(documents.dense[at]),
                        lexical=_known(documents.lexical[at]),
                        fused=float(documents.score[at]) if retrieved.mode == "hybrid" else None,
                        passages=tuple(hit for _, hit in shown),
                    )
                )
        return _Ranking(
            hits=_in_order(hits)[:top_k],
            total=total,
            generation=retrieved.generation,
            is_exact=retrieved.is_exact,
            is_stale=len(hits) < len(places),
        )

    def _document_hits(
        self, found: Candidates, total: Total, *, top_k: int, excluded: int | None
    ) -> _Ranking:
        places = {key: place for place, key in enumerate(found.keys.tolist())}
        keys = [key for key in found.keys.tolist() if key != excluded]
        keys = keys[: _n_with_ties([places[key] for key in keys], found, top_k)]
        heads = self._rows.documents_by_key(keys)
        hits = [
            Hit(
                document_id=heads[key].id,
                title=heads[key].title,
                metadata=heads[key].metadata,
                score=_similarity(found, places[key]),
                similarity=_similarity(found, places[key]),
            )
            for key in keys
            if key in heads
        ]
        return _Ranking(
            hits=_in_order(hits)[:top_k],
            total=total,
            generation=found.generation,
            is_exact=found.is_exact,
            is_stale=len(hits) < len(keys),
        )

    def _result(self, query: _Query, ranking: _Ranking, timer: "_Timer") -> SearchResult:
        return SearchResult(
            hits=ranking.hits,
            total=ranking.total,
            is_exact=ranking.is_exact,
            n_query_tokens=query.n_tokens,
            max_query_tokens=self._embedder.description.max_tokens,
            query_truncated=query.truncated,
            n_query_windows=query.n_windows,
            generation=ranking.generation,
            notices=ranking.notices,
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


def _unencoded(query: str) -> _Query:
    """Raises BlankText."""
    if is_blank(query):
        raise BlankText("is blank: it needs at least one visible character", where=("query",))
    return _Query(None, n_tokens=0, n_windows=0)


def _n_with_ties(places: Sequence[int], found: Candidates, top_k: int) -> int:
    """How many of these, best first, are among the first `top_k` or equal to the last of them."""
    if len(places) <= top_k:
        return len(places)
    scores = found.scores[places]
    return int(np.sum(scores >= scores[top_k - 1]))


def _similarity(found: Candidates, place: int) -> float:
    return round(float(found.scores[place]), DECIMALS)


def _known(score: float) -> float | None:
    return None if np.isnan(score) else float(score)


def _in_order(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.document_id)))


def _passage_hit(stored: StoredPassage, passages: Scored, place: int) -> PassageHit:
    return PassageHit(
        start=stored.passage.start,
        end=stored.passage.end,
        text=stored.text,
        page=stored.passage.page,
        similarity=_known(passages.dense[place]),
        lexical=_known(passages.lexical[place]),
    )
