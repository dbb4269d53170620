"""Keys of callers: what they allow, and how their secrets are made, written and recognised.

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
from dataclasses import dataclass
from enum import StrEnum

from app.domain import COLLECTION_NAME
from app.errors import InvalidInput

SECRET = re.compile(r"bfc_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
MAX_NAME = 100


class Scope(StrEnum):
    """What a key may do. A key may have several; none but ADMIN includes another."""

    READ = "read"
    """Search, and read documents, jobs and collections."""
    WRITE = "write"
    """Change documents, follow and cancel jobs."""
    ADMIN = "admin"
    """Everything: also create, change and drop collections."""
    METRICS = "metrics"
    """Read `/metrics`, and nothing else."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Who calls. The secret itself is known to its holder alone."""

    id: str
    name: str
    scopes: frozenset[Scope]
    collections: frozenset[str] | None
    """Names of collections or aliases that it is restricted to; None: all."""
    created_at: dt.datetime
    revoked_at: dt.datetime | None = None

    def allows(self, *scopes: Scope) -> bool:
        """Any of them."""
        return Scope.ADMIN in self.scopes or not self.scopes.isdisjoint(scopes)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as the rows keep it."""

    key: ApiKey
    digest: bytes


def new_key(
    name: str, *, scopes: Iterable[Scope], collections: Iterable[str] | None = None
) -> tuple[StoredKey, str]:
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
    secret = f"bfc_{key_id}_{secrets.token_urlsafe(32)}"
    key = ApiKey(key_id, name, granted, restricted, dt.datetime.now(dt.UTC))
    return StoredKey(key, _digest(secret)), secret


def recognised(secret: str, known: Mapping[str, StoredKey]) -> ApiKey | None:
    """The one of `known`, by id, that this is the secret of.

    Digests are compared in constant time, and one is compared for an unknown id, too.
    """
    found = SECRET.fullmatch(secret)
    if found is None:
        return None
    stored = known.get(found[1])
    is_equal = hmac.compare_digest(_digest(secret), bytes(32) if stored is None else stored.digest)
    return stored.key if stored is not None and is_equal else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
