"""`app.storage.index.Index` over files beside the rows."""

from collections.abc import Sequence
from pathlib import Path

from app.domain import Collection, View
from app.settings import Settings
from app.storage.embedded.building import Progress
from app.storage.embedded.dense import DenseIndex
from app.storage.embedded.exact import Query
from app.storage.embedded.masks import Masks
from app.storage.index import Candidates, IndexStats, Scores
from app.storage.lexical.committed import Allowed
from app.storage.lexical.index import LexicalIndex
from app.storage.rows import Keys, Rows


class EmbeddedIndex:
    """Safe to call from any thread; `apply`, `maintain` and `drop` only from the one writer's process."""

    def __init__(self, rows: Rows, directory: Path, settings: Settings) -> None:
        self._rows = rows
        self._directory = directory
        self._dense = DenseIndex(rows, directory, settings)
        self._words = LexicalIndex(rows, directory)
        self._masks = Masks()

    def nearest(
        self,
        collection: Collection,
        view: View,
        query: Query,
        *,
        depth: int,
        documents: Keys | None = None,
    ) -> Candidates:
        allowed = None if documents is None else self._masks.of(documents)
        return self._dense.nearest(collection, view, query, depth=depth, allowed=allowed)

    def similarities(self, collection: Collection, view: View, query: Query, keys: Sequence[int]) -> Scores:
        return self._dense.similarities(collection, view, query, keys)

    def matching(
        self, collection: Collection, text: str, *, depth: int, documents: Keys | None = None
    ) -> Candidates:
        allowed = None if documents is None else Allowed.documents(documents)
        return self._words.match(collection.key, text, depth=depth, allowed=allowed)

    def apply(self, collection: Collection) -> None:
        """Vectors need nothing: every search looks whether the rows have changed."""
        self._words.apply(collection.key)

    def maintain(self, collection: Collection, *, progress: Progress | None = None) -> bool:
        """A new base lets the rows forget old tombstones: the words follow them just before and after."""
        self._words.repair(collection.key)
        is_published = self._dense.maintain(collection, progress=progress)
        if is_published:
            self._words.commit(collection.key)
        return is_published

    def stats(self, collection: Collection, view: View) -> IndexStats:
        return self._dense.stats(collection, view)

    def rebuild_base(self, collection: Collection, view: View) -> None:
        """From the rows, whatever the current one is like. By the one writer, as `rebuild_words`."""
        self._dense.rebuild(collection, view)

    def rebuild_words(self, collection: Collection) -> None:
        self._words.rebuild(collection.key)

    def damages(self, collection: Collection) -> Sequence[str]:
        """What is wrong with the files, all of their bytes read; empty if nothing is."""
        return self._dense.damages(collection)

    def drop(self, collection_key: int) -> None:
        self._words.drop(collection_key)
        self._dense.drop(collection_key)

    def sweep(self) -> Sequence[int]:
        """Folders first, then rows: a collection made in between has no folder in the list."""
        folders = self._directory.iterdir() if self._directory.is_dir() else ()
        keys = {int(folder.name) for folder in folders if folder.name.isdecimal() and folder.name.isascii()}
        left_over = sorted(keys - {collection.key for collection in self._rows.collections()})
        for key in left_over:
            self.drop(key)
        return left_over

    def close(self) -> None:
        self._words.close()
        self._dense.close()
