"""What texts are, by the bi-encoder's vectors: by labels that are described, or learned from examples."""

import datetime as dt
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.embedder import Embedder, Embeddings
from app.engine.few_shot import TrainedHead, train_few_shot
from app.engine.inputs import is_blank
from app.engine.linear_head import LinearHead
from app.errors import BlankText, ClassifierNotFound, FingerprintMismatch
from app.labels import Classification, ClassifierVersion, Example
from app.services.examples import ExampleSet
from app.services.text_results import Scope, Scored, read_at, visible_places
from app.storage.classifier_rows import TrainedClassifier
from app.storage.rows import Rows

VERSIONS_KEPT = 10
TEMPERATURE = 0.05
"""Of cosines where one label is right. Least log loss on training splits of three data sets (0016)."""
SLOPE, MIDDLE = 10.5, 0.29
"""Of cosines where each label stands for itself: score 0.5 at the middle. Fitted there, too."""


@dataclass(frozen=True, slots=True)
class Classified:
    """What each text is, in the order of the texts."""

    results: tuple[Classification, ...]
    max_tokens: int
    timings_ms: Mapping[str, float]
    version: ClassifierVersion | None = None
    """Of a trained classifier."""


@dataclass(frozen=True, slots=True)
class Training:
    version: ClassifierVersion
    was_trained: bool
    """False where the active version was made of the same examples already."""
    timings_ms: Mapping[str, float]


class Classifiers:
    """Safe to call from any thread."""

    def __init__(self, rows: Rows, embedder: Embedder) -> None:
        self._rows = rows
        self._embedder = embedder

    def zero_shot(
        self,
        texts: Sequence[str],
        labels: Mapping[str, str],
        *,
        multi_label: bool,
        top_k: int,
        truncate: bool = True,
    ) -> Classified:
        """Compare texts with labels, each given as label -> what is encoded for it.

        Raises:
            BlankText: a label is blank; a blank text is an error of its own result only.
            TextTooLong: a text or label exceeds the encoder's limit, and `truncate` is False.
        """
        began = time.perf_counter()
        for i, described in enumerate(labels.values()):
            if is_blank(described):
                raise BlankText("a label needs at least one visible character", where=("labels", i))
        of_labels = self._embedder.encode_documents(list(labels.values())).vectors  # (k, d)
        places = visible_places(texts)
        encoded = self._encoded(places, texts, truncate=truncate)
        cosines = (encoded.vectors @ of_labels.T).astype(np.float64)  # (n, k)
        logits = SLOPE * (cosines - MIDDLE) if multi_label else cosines / TEMPERATURE
        no_head = LinearHead(np.empty(0, np.float32), np.empty(0, np.float32), multi_label)
        scored = Scored(
            list(labels), logits, no_head.probabilities(logits), encoded.n_tokens, encoded.truncated
        )
        results = scored.results(places, n_texts=len(texts), top_k=top_k)
        return Classified(results, self._embedder.description.max_tokens, _timings(total=began))

    def classify(
        self,
        name: str,
        texts: Sequence[str],
        *,
        version: int | None = None,
        top_k: int,
        truncate: bool = True,
    ) -> Classified:
        """By a trained classifier: its active version, or the one asked for.

        Raises:
            ClassifierNotFound.
            FingerprintMismatch: it was trained on another encoder's vectors.
            TextTooLong: a text exceeds the encoder's limit, and `truncate` is False.
        """
        began = time.perf_counter()
        trained = self._rows.classifier(name, version=version)
        self._require_same_encoder(trained.version)
        places = visible_places(texts)
        encoded = self._encoded(places, texts, truncate=truncate)
        head = LinearHead(trained.weights, trained.biases, trained.version.multi_label)
        logits = head.logits(encoded.vectors)
        scored = Scored(
            trained.version.labels,
            logits,
            head.probabilities(logits),
            encoded.n_tokens,
            encoded.truncated,
            Scope(head.scope_scores(logits), trained.version.scope_threshold),
        )
        results = scored.results(places, n_texts=len(texts), top_k=top_k)
        return Classified(
            results, self._embedder.description.max_tokens, _timings(total=began), trained.version
        )

    def train(self, name: str, examples: Sequence[Example], *, multi_label: bool) -> Training:
        """Train, cross-validate and keep a new version, unless the active one is of the same examples.

        Raises:
            BlankText, BadExamples: the examples allow no training; says which and why.
        """
        began = time.perf_counter()
        checked = ExampleSet.of(examples, multi_label=multi_label)
        digest = _digest(checked.examples, multi_label=multi_label)
        present = self._active(name)
        if present is not None and (present.examples_digest, present.fingerprint) == (
            digest,
            self._fingerprint,
        ):
            return Training(present, was_trained=False, timings_ms=_timings(total=began))
        vectors = self._embedder.encode_documents([each.text for each in checked.examples]).vectors
        encoded = time.perf_counter()
        trained = train_few_shot(
            vectors[~checked.is_out_of_scope],
            checked.targets[~checked.is_out_of_scope],
            labels=checked.labels,
            multi_label=multi_label,
            out_of_scope=vectors[checked.is_out_of_scope],
        )
        fitted = time.perf_counter()
        described = self._described(name, checked, trained, digest=digest)
        stored = self._rows.store_classifier(
            TrainedClassifier(described, trained.head.weights, trained.head.biases), n_kept=VERSIONS_KEPT
        )
        return Training(
            stored,
            was_trained=True,
            timings_ms={
                "encode": _ms(encoded - began),
                "fit": _ms(fitted - encoded),
                "total": _ms(time.perf_counter() - began),
            },
        )

    def _encoded(self, places: Sequence[int], texts: Sequence[str], *, truncate: bool) -> Embeddings:
        if not places:
            none = np.empty(0, np.int32)
            no_vectors = np.empty((0, self._embedder.description.dimensions), np.float32)
            return Embeddings(no_vectors, none, none.astype(np.bool_), none.astype(np.float32))
        return read_at(
            places, texts, lambda visible: self._embedder.encode_documents(visible, truncate=truncate)
        )

    @property
    def _fingerprint(self) -> str:
        return self._embedder.description.fingerprint

    def _active(self, name: str) -> ClassifierVersion | None:
        try:
            return self._rows.classifier(name).version
        except ClassifierNotFound:
            return None

    def _described(
        self, name: str, checked: ExampleSet, trained: TrainedHead, *, digest: str
    ) -> ClassifierVersion:
        return ClassifierVersion(
            name=name,
            version=0,
            is_active=True,
            labels=tuple(checked.labels),
            multi_label=trained.head.multi_label,
            model=self._embedder.description.name,
            fingerprint=self._fingerprint,
            n_examples=len(checked.examples),
            examples_digest=digest,
            scope_threshold=trained.scope_threshold,
            report=trained.report,
            created_at=dt.datetime.now(dt.UTC),
        )

    def _require_same_encoder(self, version: ClassifierVersion) -> None:
        if version.fingerprint != self._fingerprint:
            raise FingerprintMismatch(
                f"the classifier {version.name!r} was trained on vectors of {version.model} "
                f"({version.fingerprint}), the encoder that runs is {self._embedder.description.name} "
                f"({self._fingerprint}); train it again, or run the other encoder"
            )


def _digest(examples: Sequence[Example], *, multi_label: bool) -> str:
    """The same for the same examples in any order."""
    lines = sorted(json.dumps([each.text, each.labels]) for each in examples)
    return hashlib.sha256(json.dumps([multi_label, lines]).encode()).hexdigest()


def _timings(*, total: float) -> Mapping[str, float]:
    return {"total": _ms(time.perf_counter() - total)}


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
