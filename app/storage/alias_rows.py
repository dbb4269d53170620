"""Part of the rows seam (`app.storage.rows`): other names of collections.

Aliases and collections share their names: none has two meanings. Wherever the rows take the name of a
collection, an alias stands for it, but for creating and dropping, which need its own name.
"""

from collections.abc import Sequence
from typing import Protocol

from app.domain import Alias


class AliasRows(Protocol):
    def put_alias(self, name: str, collection: str) -> tuple[Alias, bool]:
        """Point it at a collection, given by its own name, from the next call on; (alias, was created).

        Raises:
            CollectionNotFound: there is none of that name; an alias of an alias is refused so, too.
            NameTaken: `name` is that of a collection.
            CollectionInUse: that collection is a standby.
        """

    def alias(self, name: str) -> Alias:
        """Raises AliasNotFound."""

    def aliases(self) -> Sequence[Alias]:
        """All, by name."""

    def drop_alias(self, name: str) -> None:
        """The collection stays. Raises AliasNotFound."""
