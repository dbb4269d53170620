"""Search: encode the query, rank, show the rows behind the keys.

Two lenses on one collection. Asymmetric: a short query against passages, by meaning, by words or by both; a
document counts as its best passage. Symmetric: a text against whole documents, both sides encoded alike.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np

from app.domain import (
    Collection,
    Fusion,
    Hit,
    Mode,
    Offsets,
    Rerank,
    SearchResult,
    Total,
)
from app.engine.embedder import Embedder
from app.engine.embedders import Embedders
from app.engine.inputs import is_blank
from app.engine.reading_models import ReadingModels
from app.errors import BlankText, FingerprintMismatch
from app.filters import Filter
from app.services.candidates import DECIMALS, Retrieved, Retriever, Vector
from app.services.hits import passage_hits
from app.services.pages import with_page_of_answer
from app.services.queries import Query, encoded_query, naming, query_of_words
from app.services.reranking import SecondStage, needed_reader, read_best_passages, seconds_to_load
from app.services.timing import Timer
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
class _Ranking:
    hits: tuple[Hit, ...]
    total: Total
    generation: int
    is_exact: bool
    is_stale: bool
    """A document was deleted or replaced between index and rows."""
    notices: tuple[str, ...] = ()


class Search:
    """The two searches over one store. Safe to call from any thread."""

    def __init__(
        self, rows: Rows, index: Index, embedder: Embedder | Embedders, reading: ReadingModels | None = None
    ) -> None:
        self._rows = rows
        self._index = index
        self._embedders = embedder if isinstance(embedder, Embedders) else Embedders(embedder)
        self._reading = reading or ReadingModels()

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
        rerank: Rerank | None = None,
        answers: bool = False,
        offsets: Offsets = "code_points",
    ) -> SearchResult:
        """Documents whose passages answer a query, each with its best passages.

        Documents whose metadata do not satisfy the condition are treated as if they were not there. Without
        `fusion`, that of the collection's settings counts. Lexical search does not encode the query, so the
        model, its limit and its fingerprint do not matter.

        With `rerank`, a model that reads query and passage together ranks the best hits anew: at a depth that
        does not depend on `top_k`, and before the hits are cut to it. With `answers`, each hit has the span
        of its text that answers the query best. `offsets` says whether places in texts are to be known in
        UTF-16 code units as well, which takes reading all that is before them.

        Raises:
            CollectionNotFound, FingerprintMismatch, BlankText, Overloaded.
            ModelNotConfigured: no model reranks or reads.
            TextTooLong: `truncate` is False and the query exceeds the limit of the encoder or the reranker.
        """
        timer = Timer()
        stage = self._second_stage(query, rerank, answers=answers)
        refusal = None if stage is None else stage.refusal(truncate=truncate)
        stage = None if refusal else stage
        if mode == "lexical":
            collection = self._rows.collection(collection_name)
            embedder = self._embedders.made(collection.fingerprint) or self._embedders.first
            encoded = query_of_words(query)
        else:
            collection, embedder = self._collection(collection_name)
            with naming("query"):
                encoded = encoded_query(embedder.encode_queries([query], truncate=truncate))
            timer.lap("encode")
        fusion = fusion or collection.search.fusion
        retriever = Retriever(self._index, collection, query, encoded.vector, mode=mode, fusion=fusion)

        def rank(among: Keys | None) -> _Ranking:
            depth = top_k if stage is None or rerank is None else max(top_k, rerank.candidates)
            retrieved = retriever.retrieve(depth, among=among)
            timer.lap("retrieve")
            total = retrieved.total or self._all_documents(collection, among)
            n_passages = 0 if stage is None else stage.n_passages_per_hit(len(retrieved.documents.keys))
            ranking = self._passage_hits(
                retrieved,
                total,
                top_k=depth,
                passages_per_hit=max(n_passages, passages_per_hit),
                offsets=offsets,
            )
            timer.lap("fetch")
            notices = [WITHOUT_WORDS] if retrieved.mode != mode else []
            return dataclasses.replace(ranking, notices=(*notices, *([refusal] if refusal else [])))

        ranking = _settled(self._among(collection, condition, rank, timer))
        hits, reranking = ranking.hits, None
        if seconds_to_load(stage, needed_reader(self._reading) if answers else None):
            timer.lap("load")
        if stage is not None:
            reranked = stage.reranked(hits)
            timer.lap("rerank")
            hits, reranking = reranked.hits, reranked.reranking
        hits = tuple(_with_passages(hit, passages_per_hit) for hit in hits[:top_k])
        if answers:
            hits = self._with_answers(collection, query, hits, stage)
            timer.lap("read")
        result = self._result(encoded, embedder, dataclasses.replace(ranking, hits=hits), timer)
        return dataclasses.replace(result, reranking=reranking)

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
        collection, embedder = self._collection(collection_name)
        timer = Timer()
        excluded: int | None = None
        if text is not None:
            with naming("text"):
                whole = encode_whole(text, embedder)
            encoded = Query(whole.vector, whole.n_tokens, n_windows=whole.n_windows)
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

        return self._result(
            encoded, embedder, _settled(self._among(collection, condition, rank, timer)), timer
        )

    def _second_stage(self, query: str, rerank: Rerank | None, *, answers: bool) -> SecondStage | None:
        if answers:
            needed_reader(self._reading)
        if rerank is None:
            return None
        if is_blank(query):
            raise BlankText("is blank: it needs at least one visible character", where=("query",))
        return SecondStage(self._reading, query, rerank, answers=answers, began=time.monotonic())

    def _with_answers(
        self, collection: Collection, query: str, hits: tuple[Hit, ...], stage: SecondStage | None
    ) -> tuple[Hit, ...]:
        if stage is None:
            hits = read_best_passages(needed_reader(self._reading), query, hits)
        else:
            hits = stage.with_answers(hits)
        return tuple(with_page_of_answer(hit, self._rows, collection) for hit in hits)

    def _collection(self, name: str) -> tuple[Collection, Embedder]:
        """With the encoder that made its vectors. Raises FingerprintMismatch where that does not run."""
        collection = self._rows.collection(name)
        embedder = self._embedders.made(collection.fingerprint)
        if embedder is None:
            running = self._embedders.first.description
            raise FingerprintMismatch(
                f"the collection {name!r} was made by {collection.model} ({collection.fingerprint[:12]}), "
                f"this service runs {running.name} ({running.fingerprint[:12]}); set BIFOCAL_EMBEDDER to the "
                "collection's model, or re-index it with this one: `bifocal reindex`, or POST .../reindex"
            )
        return collection, embedder

    def _stored_query(self, collection: Collection, document_id: str) -> tuple[int, Query]:
        """Key and vector of a document. It may be replaced between the two reads, so look again."""
        while True:
            stored = self._rows.document(collection.key, document_id)
            vectors = self._rows.vectors_by_key("documents", [stored.key]).vectors
            if len(vectors):
                vector = vectors[0].astype(np.float32)
                return stored.key, Query(vector / np.linalg.norm(vector), stored.n_tokens)

    def _among(
        self,
        collection: Collection,
        condition: Filter | None,
        rank: Callable[[Keys | None], _Ranking],
        timer: Timer,
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
        self, retrieved: Retrieved, total: Total, *, top_k: int, passages_per_hit: int, offsets: Offsets
    ) -> _Ranking:
        hits, n_changed = passage_hits(
            retrieved, self._rows, passages_per_hit=passages_per_hit, offsets=offsets
        )
        return _Ranking(
            hits=_in_order(hits)[:top_k],
            total=total,
            generation=retrieved.generation,
            is_exact=retrieved.is_exact,
            is_stale=n_changed > 0,
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

    def _result(self, query: Query, embedder: Embedder, ranking: _Ranking, timer: Timer) -> SearchResult:
        return SearchResult(
            hits=ranking.hits,
            total=ranking.total,
            is_exact=ranking.is_exact,
            n_query_tokens=query.n_tokens,
            max_query_tokens=embedder.description.max_tokens,
            query_truncated=query.truncated,
            n_query_windows=query.n_windows,
            generation=ranking.generation,
            notices=ranking.notices,
            timings_ms=timer.timings_ms(),
        )


def _settled(rank: Callable[[], _Ranking]) -> _Ranking:
    """Rank again while what was found is changed meanwhile, so that deletions leave no gap in the hits."""
    ranking = rank()
    for _ in range(ATTEMPTS - 1):
        if not ranking.is_stale:
            break
        ranking = rank()
    return ranking


def _n_with_ties(places: Sequence[int], found: Candidates, top_k: int) -> int:
    """How many of these, best first, are among the first `top_k` or equal to the last of them."""
    if len(places) <= top_k:
        return len(places)
    scores = found.scores[places]
    return int(np.sum(scores >= scores[top_k - 1]))


def _similarity(found: Candidates, place: int) -> float:
    return round(float(found.scores[place]), DECIMALS)


def _in_order(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.document_id)))


def _with_passages(hit: Hit, n: int) -> Hit:
    return dataclasses.replace(hit, passages=hit.passages[:n])
