"""Pages of a ranking: what comes behind the hits that were shown, each document once, none left out."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.domain import Hit, SearchResult
from app.errors import RankingChanged

MAX_REACH = 10_000
"""Hits that paging reaches. A page costs as much as all pages up to it."""

Search = Callable[[int], SearchResult]
"""The first hits of a ranking: as many as asked for, or all there are."""


@dataclass(frozen=True, slots=True)
class Place:
    """Behind the first hits of a ranking."""

    n_seen: int
    digest: str
    """Of the ids of these documents, in whatever order."""

    @classmethod
    def behind(cls, hits: Sequence[Hit]) -> "Place":
        ids = sorted(hit.document_id for hit in hits)
        return cls(len(ids), hashlib.blake2b(json.dumps(ids).encode(), digest_size=16).hexdigest())


@dataclass(frozen=True, slots=True)
class Page:
    result: SearchResult
    """With the hits of this page alone."""
    next_place: Place | None
    """None: there is nothing behind it, or nothing that paging reaches."""


def page_behind(place: Place | None, search: Search, *, size: int) -> Page:
    """The next `size` hits. Nothing is kept between pages: the ranking is made again, and what was shown must
    still be its beginning. Changes of the collection further down, or in the order of what was shown, do no
    harm.

    Raises:
        RankingChanged: another document belongs among those that were shown, or one of them is gone.
    """
    n_seen = 0 if place is None else place.n_seen
    result = search(min(n_seen + size, max(MAX_REACH, size)))
    seen, hits = result.hits[:n_seen], result.hits[n_seen:]
    if place is not None and Place.behind(seen) != place:
        seen = _shown_before(place, search)
        is_shown = {hit.document_id for hit in seen}
        hits = tuple(hit for hit in result.hits if hit.document_id not in is_shown)[:size]
    return Page(dataclasses.replace(result, hits=hits), _next_place([*seen, *hits], result, n_new=len(hits)))


def _shown_before(place: Place, search: Search) -> tuple[Hit, ...]:
    """An approximate index that looks deeper may find what it missed, though nothing changed. Then what the
    page before found at its own depth is what was shown.

    Raises RankingChanged.
    """
    hits = search(place.n_seen).hits
    if Place.behind(hits) != place:
        raise RankingChanged(
            "the collection has changed among the hits of the pages before, and going on would show a "
            "document twice or leave one out; search again without a cursor"
        )
    return hits


def _next_place(shown: Sequence[Hit], result: SearchResult, *, n_new: int) -> Place | None:
    is_more = not result.total.is_exact or result.total.n_documents > len(shown)
    return Place.behind(shown) if n_new and is_more and len(shown) < MAX_REACH else None
