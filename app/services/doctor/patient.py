"""What is examined, and how thoroughly."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from app.domain import Collection, View
from app.engine.embedder import Embedder
from app.settings import Settings
from app.storage.rows import Keys, Rows
from app.storage.sqlite.examination import Examination


@dataclass(frozen=True, slots=True)
class Thoroughness:
    sample: int = 64
    """Passages of the whole store that are encoded anew."""
    seconds: float = math.inf
    """For all checks together."""
    check_seconds: float = math.inf
    """For one of them."""
    max_digest_bytes: float = math.inf
    """Of larger files only the size is looked at."""
    max_rows: int | None = None
    """Vectors, and texts, of each collection that are looked at; None: all."""


@dataclass
class Patient:
    settings: Settings
    rows: Rows
    load: Callable[[], Embedder]
    thoroughness: Thoroughness
    examination: Examination
    embedder: Embedder | None = None
    """None until it has answered."""
    intact_bases: set[str] = field(default_factory=set)
    """Checksums of bases of which every byte was found to be what was published."""

    @cached_property
    def collections(self) -> Sequence[Collection]:
        return self.rows.collections()

    @cached_property
    def is_worked_on(self) -> bool:
        return self.rows.worker_alive()


VIEWS: tuple[View, ...] = ("passages", "documents")


def spread(keys: Keys, n_wanted: int | None) -> Keys:
    """At most that many of them, evenly: the same ones as long as the keys are the same.

    >>> spread(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    if n_wanted is None or len(keys) <= n_wanted:
        return keys
    places = np.linspace(0, len(keys) - 1, n_wanted).round().astype(np.int64)
    chosen: Keys = keys[places]
    return chosen
