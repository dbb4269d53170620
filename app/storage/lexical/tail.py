"""The passages that Tantivy's files do not have yet: few, kept in memory, scored one by one."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.storage.index import Scores
from app.storage.lexical.analysis import passage_terms
from app.storage.lexical.bm25 import SCORE_DECIMALS, inverse_document_frequency, term_score
from app.storage.rows import Keys, TextRow


@dataclass(frozen=True, slots=True)
class TailPassage:
    key: int
    document_key: int
    counts: Mapping[str, int]
    n_terms: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Passages that have a word of the query."""

    keys: Keys  # (n,)
    document_keys: Keys  # (n,)
    scores: Scores  # (n,)


NO_MATCHES = Matches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))


def tail_passages(rows: Iterable[TextRow]) -> list[TailPassage]:
    passages = []
    for row in rows:
        terms = passage_terms(row.title, row.text)
        passages.append(TailPassage(row.key, row.document_key, Counter(terms), len(terms)))
    return passages


def match_tail(
    passages: Sequence[TailPassage],
    terms: Mapping[str, int],
    *,
    base_frequencies: Mapping[str, int],
    n_base: int,
    mean_terms: float,
) -> Matches:
    """Score each of these passages as the base would.

    A word known to the base weighs here what it weighs there, so that the two rankings can be merged; one
    that only these passages have is weighed by them.

    Args:
        terms: with how often the query names each.
        base_frequencies: passages of the base that have the term.
        mean_terms: mean length of a passage.
    """
    frequencies = {term: sum(term in passage.counts for passage in passages) for term in terms}
    weights = {
        term: n
        * (
            inverse_document_frequency(base_frequencies[term], n_base)
            if base_frequencies[term]
            else inverse_document_frequency(frequencies[term], n_base + len(passages))
        )
        for term, n in terms.items()
        if frequencies[term]
    }
    matching = [passage for passage in passages if not weights.keys().isdisjoint(passage.counts)]
    scores = [
        sum(
            term_score(passage.counts[term], idf=weight, n_terms=passage.n_terms, mean_terms=mean_terms)
            for term, weight in weights.items()
            if term in passage.counts
        )
        for passage in matching
    ]
    return Matches(
        np.array([passage.key for passage in matching], np.int64),
        np.array([passage.document_key for passage in matching], np.int64),
        np.array(scores, np.float32).round(SCORE_DECIMALS),
    )
