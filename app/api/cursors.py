"""Cursors: where a listing goes on. They are opaque to clients and belong to one listing."""

import base64
import json

from app.errors import BadCursor


def encode_cursor(listing: str, after: str | int) -> str:
    """A cursor of this listing behind the entry `after`.

    >>> decode_cursor("documents 7", encode_cursor("documents 7", "a/b"))
    'a/b'
    """
    written = json.dumps([listing, after], ensure_ascii=True).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def decode_cursor(listing: str, cursor: str) -> str | int:
    """Raises BadCursor where it is not one of this listing."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        parsed = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        of_listing, after = parsed
    except (ValueError, TypeError, RecursionError) as error:
        raise BadCursor("this is no cursor; take it from next_cursor of an earlier page") from error
    if of_listing != listing or not isinstance(after, str | int) or isinstance(after, bool):
        raise BadCursor("the cursor is of another listing; start without one")
    return after
