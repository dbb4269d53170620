"""Hard negatives: passages that hybrid search ranks high for a training question and that do not answer it.

    python -m indexer.training.joint.mining DATA HOME OUTPUT

DATA is the folder of the public data sets, HOME that of a store with the collections `qa` (the paragraphs of
SQuAD train and qed-nq) and `medquad` and `scifact` (their corpora); they are filled on the first run. OUTPUT
gets JSON lines of groups. Only training questions are used, and as negatives only what is not judged
relevant; for questions with a known answer, only passages in which its words do not occur.

Both legs of the index take part (Karpukhin et al. 2020, section 5.2, mine with BM25; Xiong et al. 2021 with
the encoder itself).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain import Hit
from app.services.search import Search
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group

DEPTH = 30


@dataclass(frozen=True, slots=True)
class Judged:
    """A training question with what is known to answer it."""

    question: str
    relevant: frozenset[str]
    """Document ids."""
    positive: Candidate | None
    """None: the best passage of a relevant document, as search finds it."""


def mined_group(
    search: Search,
    collection: str,
    judged: Judged,
    *,
    n_negatives: int,
    is_negative: Callable[[Hit], bool],
    choice: random.Random,
) -> Group | None:
    """The question with a passage that answers it and some that do not; None where search finds too few."""
    hits = search.asymmetric(collection, judged.question, top_k=DEPTH, passages_per_hit=1).hits
    positive = judged.positive or _positive(hits, judged.relevant)
    negatives = [hit for hit in hits if hit.document_id not in judged.relevant and is_negative(hit)]
    if positive is None or len(negatives) < n_negatives:
        return None
    answer = NO_ANSWER if judged.positive else None
    chosen = [
        Candidate(hit.passages[0].text, hit.title, 0.0, answer)
        for hit in choice.sample(negatives, n_negatives)
    ]
    return Group(judged.question, (positive, *chosen))


def _positive(hits: Sequence[Hit], relevant: frozenset[str]) -> Candidate | None:
    for hit in hits:
        if hit.document_id in relevant:
            return Candidate(hit.passages[0].text, hit.title, 1.0, None)
    return None
