"""Cursors of searches: bound to the collection, to everything that ranks, and to the hits that were shown."""

import hashlib
import json

from app.api.cursors import decode_cursor, encode_cursor
from app.api.schemas.searches import SearchRequest
from app.errors import BadCursor
from app.services.paging import MAX_REACH, Place

NOT_RANKING = frozenset(
    {"cursor", "top_k", "passages_per_hit", "facets", "facet_limit", "answers", "budget_ms", "offsets"}
)
"""Fields that may differ from page to page."""


def place_of(collection: str, body: SearchRequest) -> Place | None:
    """Where the page begins; None is the first page.

    Raises:
        BadCursor: none that this search gave out.
    """
    if body.cursor is None:
        return None
    try:
        n_seen, digest = str(decode_cursor(_listing(collection, body), body.cursor)).split()
        place = Place(int(n_seen), digest)
    except (BadCursor, ValueError) as error:
        raise BadCursor(
            "is not of this search; take it from next_cursor of the page before, and send the other fields "
            f"as they were (only {', '.join(sorted(NOT_RANKING - {'cursor'}))} may differ)",
            where=("cursor",),
        ) from error
    if not 0 < place.n_seen < MAX_REACH:
        raise BadCursor(f"leads behind the first {MAX_REACH} hits, where paging ends", where=("cursor",))
    return place


def cursor_behind(place: Place | None, collection: str, body: SearchRequest) -> str | None:
    return (
        None if place is None else encode_cursor(_listing(collection, body), f"{place.n_seen} {place.digest}")
    )


def _listing(collection: str, body: SearchRequest) -> str:
    ranking = body.model_dump(mode="json", exclude=set(NOT_RANKING))
    written = json.dumps([type(body).__name__, collection, ranking], sort_keys=True)
    return f"search {hashlib.blake2b(written.encode(), digest_size=16).hexdigest()}"
