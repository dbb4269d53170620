"""The keys as a running service knows them, and the aliases that lead to what they reach."""

from collections.abc import Mapping, Sequence

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from app.domain import Alias
from app.keys import ApiKey, StoredKey, recognised
from app.storage.rows import Rows


class Keyring:
    """Used by the event loop alone. A key that was added or revoked counts from the next request on."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._version: int | None = None
        self._is_needed = False
        self._known: Mapping[str, StoredKey] = {}
        self._aliases: Mapping[str, str] = {}
        """To names of collections."""

    async def refresh(self) -> None:
        """Read keys and aliases again if anything was committed since: asking that costs microseconds.

        Raises:
            StorageError: they cannot be read, so nobody can be let in.
        """
        version = self._rows.data_version()
        if version == self._version:
            return
        # In a thread of its own: those that all endpoints share may be taken by searches.
        stored, aliases = await run_sync(self._read, limiter=CapacityLimiter(1))
        self._aliases = {each.name: each.collection for each in aliases}
        self._known = {each.key.id: each for each in stored if not each.key.revoked_at}
        self._is_needed = bool(stored)
        self._version = version

    @property
    def is_needed(self) -> bool:
        """Whether a key was ever made: from then on nobody gets in without one."""
        return self._is_needed

    def collection_of(self, name: str) -> str:
        """The name of the collection where it is an alias, or the same."""
        return self._aliases.get(name, name)

    def with_what_they_lead_to(self, names: frozenset[str]) -> frozenset[str]:
        return names | {self.collection_of(name) for name in names}

    def key_of(self, secret: str) -> ApiKey | None:
        return recognised(secret, self._known)

    def _read(self) -> tuple[Sequence[StoredKey], Sequence[Alias]]:
        return self._rows.api_keys(), self._rows.aliases()
