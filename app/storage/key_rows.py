"""Part of the rows seam (`app.storage.rows`): keys of callers."""

from collections.abc import Sequence
from typing import Protocol

from app.keys import ApiKey, StoredKey


class KeyRows(Protocol):
    def add_key(self, stored: StoredKey) -> None:
        """Raises Conflict if the id is taken."""

    def api_keys(self) -> Sequence[StoredKey]:
        """All, oldest first; revoked ones stay, so that revoking the last one opens nothing."""

    def revoke_key(self, key_id: str) -> ApiKey:
        """It counts no more. Repeating it changes nothing. Raises KeyNotFound."""
