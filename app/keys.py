"""Secrets of callers: how they are made, written and recognised.

A secret is `bfc_<id>_<256 random bits>`. The id is no secret: it stands in lists and logs. Only the SHA-256
of the whole is kept. A slow hash would protect a guessable password; this many random bits cannot be guessed,
and every request is checked.
"""

import datetime as dt
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping

from app.domain import COLLECTION_NAME, ApiKey, Scope
from app.errors import InvalidInput

SECRET = re.compile(r"bfc_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
MAX_NAME = 100


def new_key(
    name: str, *, scopes: Iterable[Scope], collections: Iterable[str] | None = None
) -> tuple[ApiKey, str]:
    """A key and its secret, which is shown to its holder once and kept nowhere.

    Raises:
        InvalidInput: a name that cannot be shown, no scope, or a collection that cannot exist.
    """
    if not (name.strip() and name.isprintable() and len(name) <= MAX_NAME):
        raise InvalidInput(f"a key needs a name of 1 to {MAX_NAME} printable characters, not {name[:200]!a}")
    granted = frozenset(scopes)
    if not granted:
        raise InvalidInput(f"a key needs a scope: {', '.join(Scope)}")
    restricted = None if collections is None else frozenset(collections)
    for each in restricted or ():
        if re.fullmatch(COLLECTION_NAME, each) is None:
            raise InvalidInput(f"no collection can be called {each[:200]!a}")
    key_id = secrets.token_hex(6)
    key = ApiKey(key_id, name, granted, restricted, dt.datetime.now(dt.UTC))
    return key, f"bfc_{key_id}_{secrets.token_urlsafe(32)}"


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def recognised(secret: str, known: Mapping[str, tuple[ApiKey, bytes]]) -> ApiKey | None:
    """The key, by id with its digest in `known`, that this is the secret of.

    Digests are compared in constant time, and one is compared for an unknown id, too.
    """
    found = SECRET.fullmatch(secret)
    if found is None:
        return None
    key, digest = known.get(found[1], (None, bytes(32)))
    return key if hmac.compare_digest(digest_of(secret), digest) else None
