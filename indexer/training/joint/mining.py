"""Hard negatives: passages that hybrid search ranks high for a training question and that do not answer it.

Both legs of the index take part: Karpukhin et al. 2020, section 5.2, mine with BM25; Xiong et al. 2021 with
the encoder itself.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.domain import Hit
from app.services.search import Search
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group

DEPTH = 30
"""Hits among which negatives are chosen: near enough to be hard, and enough to choose from."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A training question with what is known to answer it."""

    question: str
    relevant: frozenset[str]
    """Document ids."""
    positive: Candidate | None
    """None: the best passage of a relevant document, as search finds it."""
    is_negative: Callable[[Hit], bool]
    """Whether a hit that is not among the relevant ones may stand for what does not answer."""


def mine(
    search: Search, collection: str, questions: Iterable[Judged], *, n_negatives: int, seed: int
) -> Iterator[Group | None]:
    """Each question with a passage that answers it and some that do not; None where search finds too few."""
    choice = random.Random(seed)  # noqa: S311  a sample, not a secret
    for judged in questions:
        hits = search.asymmetric(collection, judged.question, top_k=DEPTH, passages_per_hit=1).hits
        yield _group(judged, hits, n_negatives=n_negatives, choice=choice)


def _group(judged: Judged, hits: Sequence[Hit], *, n_negatives: int, choice: random.Random) -> Group | None:
    positive = judged.positive or _found_positive(hits, judged.relevant)
    negatives = [hit for hit in hits if hit.document_id not in judged.relevant and judged.is_negative(hit)]
    if positive is None or len(negatives) < n_negatives:
        return None
    has_span = judged.positive is not None and judged.positive.answer is not None
    answer = NO_ANSWER if has_span else None
    chosen = [
        Candidate(hit.passages[0].text, hit.title, 0.0, answer)
        for hit in choice.sample(negatives, n_negatives)
    ]
    return Group(judged.question, (positive, *chosen))


def _found_positive(hits: Sequence[Hit], relevant: frozenset[str]) -> Candidate | None:
    for hit in hits:
        if hit.document_id in relevant:
            return Candidate(hit.passages[0].text, hit.title, 1.0, None)
    return None
