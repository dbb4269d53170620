"""What is asked of a search, and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.domain.metadata import Metadata

Mode = Literal["hybrid", "dense", "lexical"]
"""Which legs of the index rank: vectors, words, or both fused."""


@dataclass(frozen=True, slots=True)
class Rerank:
    """How a search looks again at the best of its hits, question and passage read together."""

    candidates: int = 20
    """Documents and passages that are looked at: of each document its best passage, and further ones while
    there are fewer documents than this."""
    budget_ms: float | None = None
    """For the whole search: what is not reranked by then keeps the first stage's order. None: no limit."""
    by: Literal["documents", "passages"] = "documents"
    """passages: the best passages among all of these documents instead, several of one if they are better."""
    is_required: bool = True
    """False: leave it out, with a notice, where the reranker would read only a part of the query."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """What the reranker did."""

    model: str
    n_candidates: int
    """Passages that it was to look at."""
    n_reranked: int
    """Fewer than the candidates where the budget was used up."""
    n_truncated: int
    """Of these, passages whose end it did not read, because they are very long."""
    n_query_tokens: int
    """Special tokens not included."""
    max_query_tokens: int
    """More are cut off."""


Offsets = Literal["code_points", "utf16"]
"""What places in texts are counted in."""


@dataclass(frozen=True, slots=True)
class Utf16:
    """A slice in UTF-16 code units, as strings of JavaScript, Java and C# count."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A quotation that answers a question: `text[start:end]` of the document."""

    text: str
    start: int
    end: int
    page: int | None
    score: float
    """Probability that it answers the question, 0..1, calibrated where the model is."""
    logit: float
    """Log-odds of that; answers are ranked by it."""
    margin: float
    """Logit of the span, less that of "no answer" in the same window."""
    relevance: float | None
    """Raw logit of its passage's relevance; None where no model judged it."""
    utf16: Utf16 | None = None
    """The same slice; None unless asked for."""


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage of a hit."""

    start: int
    end: int
    text: str
    page: int | None
    similarity: float | None
    """Cosine with the query, -1..1; None in lexical search."""
    lexical: float | None = None
    """BM25, from 0; None in dense search."""
    fused: float | None = None
    """Of both, as ranked among passages; None unless hybrid."""
    rerank: float | None = None
    """Raw logit of the reranker; None where it did not look."""
    utf16: Utf16 | None = None
    """The same slice; None unless asked for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that answers a query."""

    document_id: str
    title: str | None
    metadata: Metadata
    score: float
    """What ranks the hits: `fused` in hybrid, `similarity` in dense, `lexical` in lexical search; in a
    reranked search, the combination of that with `rerank`."""
    similarity: float | None
    """Cosine, -1..1: of the nearest passage (asymmetric) or of the whole documents (symmetric)."""
    lexical: float | None = None
    """BM25 of the best passage, from 0; 0 for one that is not among the best by words."""
    fused: float | None = None
    passages: tuple[PassageHit, ...] = ()
    """Best first."""
    rerank: float | None = None
    """Raw logit of its most relevant passage; None where the reranker did not look."""
    relevance: float | None = None
    """The same as a probability, 0..1, for display; None where the model's scores are none."""
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """How many documents a search has as hits, shown or not."""

    n_documents: int
    is_exact: bool
    """False: at least so many."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Hit, ...]
    total: Total
    is_exact: bool
    """Whether exhaustive search would rank the same; False where an approximate index ranked."""
    n_query_tokens: int
    """0 in lexical search, which does not encode the query."""
    max_query_tokens: int
    query_truncated: bool
    n_query_windows: int
    """Pieces in which the query was encoded: more than one only for long texts in symmetric search."""
    generation: int
    timings_ms: Mapping[str, float]
    """Milliseconds per stage: encode, filter (if any), retrieve, fetch, rerank and read (if asked for),
    total."""
    notices: tuple[str, ...] = ()
    """What was done otherwise than asked for, because it could not be done."""
    reranking: Reranking | None = None
    """None in a search that was not reranked."""


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str | int | float | bool
    n_documents: int


@dataclass(frozen=True, slots=True)
class Facet:
    """How many documents hold each value of a metadata field. A list counts under each of its values."""

    values: tuple[FacetValue, ...]
    """Those of the most documents, most first; equal ones: booleans, numbers, strings, in their own order."""
    n_other_values: int
    """Further values, not shown."""
    n_other: int
    """Sum of their documents."""
    n_missing: int
    """Documents without any value: field missing, null or an empty list."""
