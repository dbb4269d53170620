"""Tantivy's side of a search: the best passages of one commit that a condition accepts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import tantivy
from numpy.typing import NDArray
from tantivy import DocAddress, Occur, Query, Searcher

from app.storage.lexical.bm25 import SCORE_DECIMALS
from app.storage.lexical.files import Position
from app.storage.lexical.tail import NO_MATCHES, Matches
from app.storage.rows import Keys

TERM_SET_LIMIT = 100
"""Allowed keys up to which asking for them by name is always the cheaper way."""


def naming_is_cheaper(n_allowed: int, n_hits: int) -> bool:
    """Whether asking for these keys by name takes less time than retrieving so many hits.

    Measured at 1,000,000 passages: 15 us per key, less when there are many; 0.5 us per hit.
    """
    return min(15 * n_allowed, 50_000 + n_allowed) < 0.5 * n_hits


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a search may return: passages by their own keys or by those of their documents."""

    field: Literal["key", "document_key"]
    keys: Keys
    """Ascending."""

    @classmethod
    def passages(cls, keys: Keys) -> "Allowed":
        return cls("key", keys)

    @classmethod
    def documents(cls, keys: Keys) -> "Allowed":
        return cls("document_key", keys)

    def flags(self, matches: Matches) -> NDArray[np.bool_]:
        return contains(self.keys, matches.keys if self.field == "key" else matches.document_keys)


@dataclass(frozen=True, slots=True)
class Base:
    """One commit. Safe to share between threads."""

    searcher: Searcher
    schema: tantivy.Schema
    position: Position

    @property
    def n_passages(self) -> int:
        """As the engine counts: with the one that holds the position."""
        return self.searcher.num_docs

    @property
    def mean_terms(self) -> float | None:
        """None while there is no passage."""
        return self.position.n_terms / (self.position.n_added + 1) if self.position.n_terms else None

    def frequencies(self, terms: Mapping[str, int]) -> dict[str, int]:
        return {term: self.searcher.doc_freq("terms", term) for term in terms}

    def match(
        self, terms: Mapping[str, int], *, depth: int, dead: Keys, allowed: Allowed | None = None
    ) -> Matches:
        """The `depth` best, and whoever ties with the last of them, in no particular order.

        Args:
            terms: with how often the query names each.
            dead: ascending; not returned.
            allowed: no other is returned.
        """
        query = self._query(terms)
        if allowed is None:
            return self._retrieve(query, depth=depth, n_hits=depth + len(dead) + 16, dead=dead, allowed=None)
        if len(allowed.keys) <= TERM_SET_LIMIT:
            return self._match_named(query, depth=depth, dead=dead, allowed=allowed)
        return self._retrieve(query, depth=depth, n_hits=4 * depth + 256, dead=dead, allowed=allowed)

    def _query(self, terms: Mapping[str, int]) -> Query:
        clauses = []
        for term, n in terms.items():
            clause = Query.term_query(self.schema, "terms", term, index_option="freq")
            clauses.append((Occur.Should, clause if n == 1 else Query.boost_query(clause, float(n))))
        return Query.boolean_query(clauses)

    def _match_named(self, query: Query, *, depth: int, dead: Keys, allowed: Allowed) -> Matches:
        """Let Tantivy look at nothing but the allowed keys."""
        if not len(allowed.keys):
            return NO_MATCHES
        named = Query.term_set_query(self.schema, allowed.field, allowed.keys.tolist())
        restricted = Query.boolean_query(
            [(Occur.Must, query), (Occur.Must, Query.const_score_query(named, 0.0))]
        )
        return self._retrieve(restricted, depth=depth, n_hits=depth + len(dead) + 16, dead=dead, allowed=None)

    def _retrieve(
        self, query: Query, *, depth: int, n_hits: int, dead: Keys, allowed: Allowed | None
    ) -> Matches:
        """Ask for more hits than needed, drop those not accepted, and go deeper until enough are left.

        The share accepted so far says how deep; when naming the allowed keys is cheaper, they are named.
        """
        while True:
            hits = self.searcher.search(query, min(n_hits, self.searcher.num_docs), count=False).hits
            addresses = [address for _, address in hits]
            scores = np.array([score for score, _ in hits], np.float32).round(SCORE_DECIMALS)
            keys = self._values("key", addresses)
            accepted = ~contains(dead, keys)
            if allowed is not None:
                accepted &= contains(
                    allowed.keys, keys if allowed.field == "key" else self._values(allowed.field, addresses)
                )
            best = np.flatnonzero(accepted)
            if len(hits) < n_hits or (len(best) >= depth and scores[best[depth - 1]] > scores[-1]):
                best = best[scores[best] >= scores[best[depth - 1]]] if len(best) > depth else best
                document_keys = self._values("document_key", [addresses[i] for i in best])
                return Matches(keys[best], document_keys, scores[best])
            n_hits = max(2 * n_hits, int(1.5 * depth * len(hits) / (len(best) + 1)))
            if allowed is not None and naming_is_cheaper(len(allowed.keys), n_hits):
                return self._match_named(query, depth=depth, dead=dead, allowed=allowed)

    def _values(self, field: str, addresses: list[DocAddress]) -> Keys:
        return np.array(self.searcher.fast_field_values(field, addresses), np.int64)


def contains(ascending: Keys, keys: Keys) -> NDArray[np.bool_]:
    """Which of `keys` are among the ascending ones."""
    if not len(ascending):
        return np.zeros(len(keys), np.bool_)
    places = np.searchsorted(ascending, keys)
    found: NDArray[np.bool_] = ascending[np.minimum(places, len(ascending) - 1)] == keys
    return found
