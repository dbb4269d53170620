"""Part of the rows seam (`app.storage.rows`): trained classifiers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.labels import ClassifierVersion


@dataclass(frozen=True, slots=True)
class TrainedClassifier:
    """A linear head on a bi-encoder's vectors: logits = vectors @ weights.T + biases."""

    version: ClassifierVersion
    weights: NDArray[np.float32]  # (labels, d)
    biases: NDArray[np.float32]  # (labels,)


class ClassifierRows(Protocol):
    def store_classifier(self, trained: TrainedClassifier, *, n_kept: int) -> ClassifierVersion:
        """Keep it as the next version of its name and make that the active one.

        Number, activity and time in `trained` are not looked at. Beyond `n_kept` versions the oldest are
        forgotten.
        """

    def classifier(self, name: str, *, version: int | None = None) -> TrainedClassifier:
        """The active version, or the one asked for. Raises ClassifierNotFound."""

    def classifiers(self) -> Sequence[ClassifierVersion]:
        """The active version of each, by name."""

    def classifier_versions(self, name: str) -> Sequence[ClassifierVersion]:
        """Newest first. Raises ClassifierNotFound."""

    def activate_classifier(self, name: str, version: int) -> ClassifierVersion:
        """Raises ClassifierNotFound."""

    def drop_classifier(self, name: str) -> None:
        """With all versions; the name may be used again. Raises ClassifierNotFound."""
