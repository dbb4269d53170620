"""The nouns of classification: examples, classifiers, labels and entities."""

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled text to train a classifier from."""

    text: str
    labels: tuple[str, ...]
    """One; none: out of scope. Where a text may have several labels: any number, none too."""


@dataclass(frozen=True, slots=True)
class LabelReport:
    label: str
    n_examples: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Confusion:
    label: str
    predicted: str
    n_examples: int


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """How good a classifier is, each example judged by one that was trained without it (cross-validation)."""

    n_folds: int
    accuracy: float
    """Share of examples whose labels are all right and none too many."""
    macro_f1: float
    """Mean over labels."""
    labels: tuple[LabelReport, ...]
    confusions: tuple[Confusion, ...]
    """Most frequent first; of single labels only."""
    in_scope_rejected: float
    """Share of the examples with a label that fall below the threshold of scope."""
    n_out_of_scope: int
    out_of_scope_rejected: float | None
    """Share of the examples without a label that fall below it; None without such examples."""
    scope_auroc: float | None
    """Probability that an example with a label has a greater score of scope than one without."""


@dataclass(frozen=True, slots=True)
class ClassifierVersion:
    """One training of a classifier; the active version is the one that answers."""

    name: str
    version: int
    """1, 2, ... within the name."""
    is_active: bool
    labels: tuple[str, ...]
    multi_label: bool
    """Whether a text may have several labels, or none."""
    model: str
    """The bi-encoder whose vectors it reads."""
    fingerprint: str
    n_examples: int
    examples_digest: str
    """Of examples and options: equal ones need no second training."""
    scope_threshold: float
    """Texts whose score of scope is less are out of scope."""
    report: TrainingReport
    created_at: dt.datetime


@dataclass(frozen=True, slots=True)
class LabelScore:
    label: str
    score: float
    """Probability, 0..1."""
    logit: float
    """What labels are ranked by: it does not saturate."""


@dataclass(frozen=True, slots=True)
class Classification:
    """What a text is."""

    labels: tuple[LabelScore, ...]
    """Best first, equal ones by label."""
    n_tokens: int
    truncated: bool
    scope_score: float | None = None
    """Greater is nearer to the examples; None where the classifier knows no scope."""
    out_of_scope: bool | None = None
    error: str | None = None
    """Why it was not classified; then there are no labels."""


@dataclass(frozen=True, slots=True)
class Entity:
    entity_group: str
    score: float
    """Mean probability of its words, 0..1."""
    word: str
    """The text from start to end."""
    start: int
    end: int
