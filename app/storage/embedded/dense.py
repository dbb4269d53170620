"""The dense index: exact or approximate nearest vectors of every collection, following the rows."""

import json
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import get_args

import numpy as np

from app.domain import Collection, View
from app.errors import CollectionNotFound
from app.settings import Settings
from app.storage.embedded.bases import damages, folder_of
from app.storage.embedded.building import Progress
from app.storage.embedded.exact import Query
from app.storage.embedded.following import Follower
from app.storage.embedded.masks import DocumentMask
from app.storage.embedded.publication import Publisher
from app.storage.embedded.snapshots import Snapshot
from app.storage.index import Candidates, IndexStats, Scores
from app.storage.rows import Rows

VIEWS: Sequence[View] = get_args(View)

TAIL_SHARE = 0.1
"""Of the base. A tail of that size is searched about as fast as the base itself."""

DELETED_SHARE = 0.2
"""Of the base; its space is worth a rebuild."""

RESIDENT_BYTES = 512 * 2**20
"""Of snapshots kept. The one in use is kept whatever its size."""

MAX_FOLLOWERS = 256
"""Each may hold a file open."""


class DenseIndex:
    def __init__(
        self, rows: Rows, directory: Path, settings: Settings, *, max_resident_bytes: int = RESIDENT_BYTES
    ) -> None:
        self._rows = rows
        self._directory = directory
        self._settings = settings
        self._max_resident_bytes = max_resident_bytes
        self._publisher = Publisher(rows, directory)
        self._followers: OrderedDict[tuple[int, View], Follower] = OrderedDict()
        """Least recently used first."""
        self._lock = Lock()

    @property
    def resident_bytes(self) -> int:
        """About how much memory the snapshots take that are kept."""
        with self._lock:
            return sum(follower.resident_bytes for follower in self._followers.values())

    def nearest(
        self,
        collection: Collection,
        view: View,
        query: Query,
        *,
        depth: int,
        allowed: DocumentMask | None = None,
    ) -> Candidates:
        return self._snapshot(collection, view).nearest(query, depth, allowed)

    def similarities(self, collection: Collection, view: View, query: Query, keys: Sequence[int]) -> Scores:
        return self._snapshot(collection, view).similarities(query, np.array(keys, np.int64))

    def maintain(self, collection: Collection, *, progress: Progress | None = None) -> bool:
        published = [self._maintain(collection, view, progress or _silent) for view in VIEWS]
        return any(published)

    def rebuild(self, collection: Collection, view: View) -> None:
        """Publish a base of what the rows have now, whatever the current one is like."""
        self._publish(collection, view, self._n_live(collection, view), _silent)

    def stats(self, collection: Collection, view: View) -> IndexStats:
        snapshot = self._snapshot(collection, view)
        base = snapshot.base
        return IndexStats(
            generation=snapshot.number,
            n_base=snapshot.n_base,
            n_tail=snapshot.n_tail,
            n_deleted=snapshot.n_deleted,
            size_bytes=0 if base is None else base.size_bytes,
            details={} if base is None else json.loads(base.generation.details),
        )

    def damages(self, collection: Collection) -> Sequence[str]:
        """What is wrong with the current bases; reads all of their bytes."""
        generations = [self._rows.generation(collection.key, view) for view in VIEWS]
        return [
            damage
            for generation in generations
            if generation is not None
            for damage in damages(folder_of(self._directory, generation), generation)
        ]

    def drop(self, collection_key: int) -> None:
        with self._lock:
            for view in VIEWS:
                self._followers.pop((collection_key, view), None)
        shutil.rmtree(self._directory / str(collection_key), ignore_errors=True)

    def close(self) -> None:
        with self._lock:
            followers = list(self._followers.values())
            self._followers.clear()
        for follower in followers:
            follower.close()

    def _maintain(self, collection: Collection, view: View, progress: Progress) -> bool:
        self._publisher.clean(collection.key, view)
        try:
            n_live = self._n_live(collection, view)
        except CollectionNotFound:  # dropped meanwhile
            return False
        return self._is_due(collection, view, n_live) and self._publish(collection, view, n_live, progress)

    def _publish(self, collection: Collection, view: View, n_live: int, progress: Progress) -> bool:
        wanted = collection.settings.index.exact_limit
        base = self._publisher.publish(
            collection.key,
            view,
            n_expected=n_live,
            exact_limit=self._settings.exact_limit if wanted is None else wanted,
            progress=lambda stage, share: progress(f"{view}: {stage}", share),
        )
        if base is None:
            return False
        self._follower(collection.key, view).adopt(base)
        return True

    def _n_live(self, collection: Collection, view: View) -> int:
        stats = self._rows.collection_stats(collection.key)
        return stats.n_passages if view == "passages" else stats.n_documents

    def _is_due(self, collection: Collection, view: View, n_live: int) -> bool:
        has_base = self._rows.generation(collection.key, view) is not None
        if not has_base and n_live >= self._settings.compact_tail:
            return True  # known without reading them all into a tail
        snapshot = self._snapshot(collection, view)
        n_tail_limit = max(self._settings.compact_tail, TAIL_SHARE * snapshot.n_base)
        is_tail_long = snapshot.n_tail_with_deleted >= n_tail_limit
        return is_tail_long or snapshot.n_deleted > DELETED_SHARE * snapshot.n_base

    def _snapshot(self, collection: Collection, view: View) -> Snapshot:
        follower = self._follower(collection.key, view)
        latest = follower.latest
        snapshot = follower.current()
        if snapshot is not latest:
            self._forget_least_used()
        return snapshot

    def _follower(self, collection_key: int, view: View) -> Follower:
        with self._lock:
            follower = self._followers.get((collection_key, view))
            if follower is None:
                follower = Follower(self._rows, self._directory, collection_key, view)
                self._followers[collection_key, view] = follower
            self._followers.move_to_end((collection_key, view))
            return follower

    def _forget_least_used(self) -> None:
        """Searches that still hold a snapshot finish with it."""
        with self._lock:
            n_bytes = sum(follower.resident_bytes for follower in self._followers.values())
            while len(self._followers) > 1 and (
                n_bytes > self._max_resident_bytes or len(self._followers) > MAX_FOLLOWERS
            ):
                _, follower = self._followers.popitem(last=False)
                n_bytes -= follower.resident_bytes


def _silent(_stage: str, _share: float) -> None:
    pass
