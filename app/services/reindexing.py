"""Re-indexing a collection for the model that runs: what may be asked for, before the rows take it on."""

import dataclasses
import re
from dataclasses import dataclass

from app.domain import (
    COLLECTION_NAME,
    SPLITTER_VERSION,
    Collection,
    CollectionSettings,
    IndexSettings,
    Job,
    SplitterSettings,
)
from app.errors import CollectionInUse, InvalidInput
from app.storage.rows import Rows


@dataclass(frozen=True, slots=True)
class Changes:
    """What shall be otherwise; None: as it is."""

    max_tokens: int | None = None
    overlap_tokens: int | None = None
    index: IndexSettings | None = None

    def applied_to(self, settings: CollectionSettings) -> CollectionSettings:
        """Raises InvalidInput: neighbours would share more than half of a passage."""
        old = settings.splitter
        splitter = SplitterSettings(
            old.max_tokens if self.max_tokens is None else self.max_tokens,
            old.overlap_tokens if self.overlap_tokens is None else self.overlap_tokens,
            SPLITTER_VERSION,
        )
        if splitter.overlap_tokens > splitter.max_tokens // 2:
            raise InvalidInput(
                f"overlap_tokens would be {splitter.overlap_tokens}; at most half of max_tokens is allowed, "
                f"that is {splitter.max_tokens // 2}",
                where=("splitter", "overlap_tokens"),
            )
        return dataclasses.replace(settings, splitter=splitter, index=self.index or settings.index)


def begin_reindex(
    rows: Rows, name: str, changes: Changes, *, fingerprint: str, model: str, standby: str | None = None
) -> Job:
    """The job that makes the new form beside the one that is searched, and switches to it.

    `standby` is the name of the new form until then, and of the former one afterwards.

    Raises:
        InvalidInput, CollectionNotFound
        CollectionInUse, NameTaken: as `Rows.begin_reindex`.
    """
    collection = rows.collection(name)
    return rows.begin_reindex(
        collection.name,
        changes.applied_to(collection.settings),
        standby=standby or _standby_name(collection),
        fingerprint=fingerprint,
        model=model,
    )


def require_own_documents(collection: Collection) -> None:
    """Raises CollectionInUse: it is a standby, and has the documents of its collection."""
    if collection.standby_of is not None:
        raise CollectionInUse(
            f"{collection.name!r} is the standby of {collection.standby_of!r} and gets its documents there; "
            "write to that one"
        )


def _standby_name(collection: Collection) -> str:
    name = f"{collection.name}-standby"
    if re.fullmatch(COLLECTION_NAME, name) is None:
        raise InvalidInput(
            f"{name!r} is too long for the name of a standby; give it another one", where=("standby",)
        )
    return name
