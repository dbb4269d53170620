"""First stage of asymmetric search: the documents that may answer a query, with the score of each leg."""

import dataclasses
import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Collection, Fusion, Mode, Total
from app.engine.fusion import convex_combination, reciprocal_rank_fusion
from app.errors import StorageDamaged
from app.storage.index import Candidates, Index
from app.storage.rows import Keys

logger = logging.getLogger(__name__)

DEPTH = 200
"""Passages that a leg contributes at first; in hybrid search, `Fusion.depth` says how many vectors do."""
WORDS_PER_VECTOR = 4
"""Passages that the lexical leg of a hybrid search contributes for each of the dense leg."""
DEEPER = 2
"""Factor from one tier to the next. The tiers are the same whatever `top_k` is, and what one tier has found
keeps its scores in the next: so a score never depends on `top_k`."""
MAX_DEPTH = 10_000
"""Beyond, the search for better or equal documents ends, unless there are fewer than `top_k`."""
DECIMALS = 6
"""Of a score. The last bits depend on where a vector lies; without them equal texts are equal."""

Vector = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scored:
    """n passages or documents with the scores of each stage; NaN where a leg did not run."""

    keys: Keys  # (n,)
    document_keys: Keys  # (n,)
    dense: Floats  # (n,), cosine
    lexical: Floats  # (n,), BM25; 0 for what has no word of the query or is not among the best by words
    score: Floats  # (n,), what they are ranked by


NOTHING = Scored(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class Retrieved:
    documents: Scored
    """Best first, the first `top_k` and whoever ties with the last of them. `keys` are the documents' own."""
    passages: Scored
    """All that were looked at, best first."""
    total: Total | None
    """None: all documents that there are."""
    generation: int
    is_exact: bool
    mode: Mode
    """What ranked them. Dense in a hybrid search whose words cannot be searched now."""


@dataclass(frozen=True, slots=True)
class Legs:
    """What both legs say at one depth. `least_*`: no passage that was left out scores more."""

    passages: Scored
    """Not ranked yet: `score` is NaN."""
    least_dense: float
    least_lexical: float
    is_complete: bool
    """Nothing was left out."""
    generation: int
    is_exact: bool


class Retriever:
    """Asks the legs of an index for one query and joins what they say.

    Args:
        vector: (d,) of the query, of length 1; None in lexical mode, which needs no model.
    """

    def __init__(
        self,
        index: Index,
        collection: Collection,
        query: str,
        vector: Vector | None,
        *,
        mode: Mode,
        fusion: Fusion,
    ) -> None:
        self._index = index
        self._collection = collection
        self._query = query
        self._vector = vector
        self._mode = mode
        self._fusion = fusion

    def retrieve(self, top_k: int, *, among: Keys | None = None) -> Retrieved:
        """The first min(top_k, all) documents; in lexical mode all are those with a word of the query.

        `among` are keys of documents, ascending; where given, there are no others.

        Goes deeper until there are `top_k` documents and no document that was left out could be among them,
        were its best passage as good as the worst that was found by either leg (the threshold of Fagin, Lotem
        and Naor 2003).

        A hybrid search goes on by meaning alone while the files of the words are damaged.
        """
        try:
            return self._retrieve(top_k, among)
        except StorageDamaged as error:
            if self._mode != "hybrid":
                raise
            logger.error("searching by meaning alone collection=%s: %s", self._collection.name, error)  # noqa: TRY400  no fault of the code
        self._mode = "dense"
        return self._retrieve(top_k, among)

    def _retrieve(self, top_k: int, among: Keys | None) -> Retrieved:
        depth, words_depth = DEPTH, DEPTH
        if self._mode == "hybrid":
            depth, words_depth = self._fusion.depth, WORDS_PER_VECTOR * self._fusion.depth
        passages = documents = NOTHING
        while True:
            legs = self._legs(depth, words_depth, among)
            new = _of_other_documents(legs.passages, documents.keys)
            passages = self._with_scores(_joined(passages, new))
            documents = self._with_scores(_joined(documents, _documents_of(new)))
            ranked = _best_first(documents)
            is_settled = legs.is_complete or (
                len(ranked.keys) >= top_k and ranked.score[top_k - 1] > self._score_of_unseen(documents, legs)
            )
            if is_settled or (len(ranked.keys) >= top_k and depth >= MAX_DEPTH):
                return Retrieved(
                    documents=_with_ties(ranked, top_k),
                    passages=_best_first(passages),
                    total=self._total(len(ranked.keys), legs),
                    generation=legs.generation,
                    is_exact=legs.is_exact and is_settled,
                    mode=self._mode,
                )
            depth *= DEEPER
            words_depth *= DEEPER

    def _total(self, n_found: int, legs: Legs) -> Total | None:
        """Meaning has something to say of every document, words only of those that have one of them."""
        if legs.is_complete or self._mode == "lexical":
            return Total(n_found, is_exact=legs.is_complete)
        return None

    def _legs(self, depth: int, words_depth: int, among: Keys | None) -> Legs:
        collection, vector = self._collection, self._vector
        dense = words = None
        if vector is not None and self._mode != "lexical":
            dense = self._index.nearest(collection, "passages", vector, depth=depth, documents=among)
        if self._mode != "dense":
            words = self._index.matching(collection, self._query, depth=words_depth, documents=among)
        if dense is None:
            assert words is not None
            scores = words.scores.astype(np.float64)
            return Legs(
                _unranked(words, dense=np.full(len(scores), np.nan), lexical=scores),
                least_dense=np.nan,
                least_lexical=_least(words, words_depth),
                is_complete=len(words.keys) < words_depth,
                generation=words.generation,
                is_exact=words.is_exact,
            )
        cosines = dense.scores.astype(np.float64).round(DECIMALS)
        return Legs(
            self._both(dense, cosines, words),
            least_dense=float(cosines[-1]) if len(cosines) else np.nan,
            least_lexical=np.nan if words is None else _least(words, words_depth),
            is_complete=len(dense.keys) < depth,
            generation=dense.generation,
            is_exact=dense.is_exact and (words is None or words.is_exact),
        )

    def _both(self, dense: Candidates, cosines: Floats, words: Candidates | None) -> Scored:
        if words is None:
            return _unranked(dense, dense=cosines, lexical=np.full(len(cosines), np.nan))
        by_words = dict(zip(words.keys.tolist(), words.scores.tolist(), strict=True))
        lexical = np.array([by_words.get(key, 0.0) for key in dense.keys.tolist()], np.float64)
        found = _unranked(dense, dense=cosines, lexical=lexical)
        is_new = ~np.isin(words.keys, dense.keys)
        return _joined(found, self._with_cosines(words, is_new))

    def _with_cosines(self, words: Candidates, chosen: NDArray[np.bool_]) -> Scored:
        """Those that died since the lexical leg was asked are left out."""
        assert self._vector is not None
        keys = words.keys[chosen]
        found = self._index.similarities(self._collection, "passages", self._vector, keys.tolist())
        is_live = ~np.isnan(found)
        places = np.flatnonzero(chosen)[is_live]
        cosines: Floats = found[is_live].astype(np.float64).round(DECIMALS)
        return Scored(
            keys=words.keys[places],
            document_keys=words.document_keys[places],
            dense=cosines,
            lexical=words.scores[places].astype(np.float64),
            score=np.full(len(places), np.nan),
        )

    def _with_scores(self, found: Scored) -> Scored:
        """What has a score keeps it: a rank is counted among what the tiers up to its own have found."""
        scores = self._score(found.dense, found.lexical)
        return dataclasses.replace(found, score=np.where(np.isnan(found.score), scores, found.score))

    def _score_of_unseen(self, documents: Scored, legs: Legs) -> float:
        """That a document would have which was left out, as good as the worst that was not, in both legs."""
        scores = self._score(
            np.append(documents.dense, legs.least_dense), np.append(documents.lexical, legs.least_lexical)
        )
        return float(scores[-1])

    def _score(self, dense: Floats, lexical: Floats) -> Floats:
        if self._mode == "dense":
            return dense
        if self._mode == "lexical":
            return lexical
        if self._fusion.method == "rrf":
            return reciprocal_rank_fusion(dense, lexical).round(DECIMALS)
        return convex_combination(dense, lexical, dense_weight=self._fusion.dense_weight).round(DECIMALS)


def _unranked(found: Candidates, *, dense: Floats, lexical: Floats) -> Scored:
    return Scored(found.keys, found.document_keys, dense, lexical, np.full(len(found.keys), np.nan))


def _least(words: Candidates, depth: int) -> float:
    return float(words.scores[-1]) if len(words.keys) == depth else 0.0


def _joined(first: Scored, second: Scored) -> Scored:
    return Scored(
        keys=np.concatenate([first.keys, second.keys]),
        document_keys=np.concatenate([first.document_keys, second.document_keys]),
        dense=np.concatenate([first.dense, second.dense]),
        lexical=np.concatenate([first.lexical, second.lexical]),
        score=np.concatenate([first.score, second.score]),
    )


def _taken(scored: Scored, places: NDArray[np.intp]) -> Scored:
    return Scored(
        keys=scored.keys[places],
        document_keys=scored.document_keys[places],
        dense=scored.dense[places],
        lexical=scored.lexical[places],
        score=scored.score[places],
    )


def _documents_of(passages: Scored) -> Scored:
    """Their documents, each with the best that any of its passages has in each leg, not scored yet."""
    keys, owner = np.unique(passages.document_keys, return_inverse=True)
    return Scored(
        keys=keys,
        document_keys=keys,
        dense=_best_of_each(owner, passages.dense, n=len(keys)),
        lexical=_best_of_each(owner, passages.lexical, n=len(keys)),
        score=np.full(len(keys), np.nan),
    )


def _best_first(scored: Scored) -> Scored:
    return _taken(scored, np.lexsort((scored.keys, -scored.score)))


def _of_other_documents(passages: Scored, document_keys: Keys) -> Scored:
    return _taken(passages, np.flatnonzero(~np.isin(passages.document_keys, document_keys)))


def _best_of_each(owner: NDArray[np.intp], scores: Floats, *, n: int) -> Floats:
    """The greatest score of each of n owners; NaN where the leg did not run."""
    best = np.full(n, -np.inf)
    with np.errstate(invalid="ignore"):
        np.maximum.at(best, owner, scores)
    return best


def _with_ties(documents: Scored, top_k: int) -> Scored:
    """The first `top_k` and those equal to the last of them."""
    if len(documents.keys) <= top_k:
        return documents
    n = int(np.sum(documents.score >= documents.score[top_k - 1]))
    return _taken(documents, np.arange(n))
