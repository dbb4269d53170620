"""Training a classifier from few examples: how regular, how good, and what is out of its scope."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.linear_head import LinearHead, Logits, Targets, Vectors, train_head
from app.labels import Confusion, LabelReport, TrainingReport

REGULARITIES = (1.0, 10.0)
"""Values of C to choose from: 1 is better for few labels with many examples, 10 for many labels with few."""
N_FOLDS, N_FOLDS_OF_MANY, MANY = 5, 3, 5_000
"""Folds of cross-validation, and those for more examples than MANY."""
IN_SCOPE_REJECTED = 0.05
"""Share of the examples that the threshold of scope may reject where no example is out of scope."""
MAX_CONFUSIONS = 50


@dataclass(frozen=True, slots=True)
class TrainedHead:
    head: LinearHead
    scope_threshold: float
    report: TrainingReport


def train_few_shot(
    vectors: Vectors,
    targets: Targets,
    *,
    labels: Sequence[str],
    multi_label: bool,
    out_of_scope: Vectors,
) -> TrainedHead:
    """Choose C by cross-validation, report on held-out examples, then train on all of them.

    Args:
        vectors: (n, d) of the examples with a label.
        targets: (n, k), the same in columns of `labels`; at least two examples for each label.
        out_of_scope: (m, d) of examples that are none of the labels; they only choose the threshold.
    """
    folds = assign_folds(targets, multi_label=multi_label)
    held_out = [_held_out_logits(vectors, targets, folds, multi_label=multi_label, c=c) for c in REGULARITIES]
    made = [_predictions(logits, multi_label=multi_label) for logits in held_out]
    best = int(np.argmax([(each == targets).all(axis=1).mean() for each in made]))
    head = train_head(vectors, targets, multi_label=multi_label, c=REGULARITIES[best])
    in_scope = head.scope_scores(held_out[best])
    beyond = head.scope_scores(head.logits(out_of_scope)) if len(out_of_scope) else np.empty(0)
    threshold = scope_threshold(in_scope, beyond)
    return TrainedHead(
        head,
        threshold,
        TrainingReport(
            n_folds=int(folds.max()) + 1,
            accuracy=_share((made[best] == targets).all(axis=1)),
            macro_f1=float(np.mean([each.f1 for each in label_reports(labels, targets, made[best])])),
            labels=label_reports(labels, targets, made[best]),
            confusions=() if multi_label else confusions(labels, targets, made[best]),
            in_scope_rejected=_share(in_scope < threshold),
            n_out_of_scope=len(beyond),
            out_of_scope_rejected=_share(beyond < threshold) if len(beyond) else None,
            scope_auroc=auroc(in_scope, beyond) if len(beyond) else None,
        ),
    )


def assign_folds(targets: Targets, *, multi_label: bool) -> NDArray[np.int64]:
    """(n,) fold of each example: every label is spread evenly over the folds; the same at every call."""
    n = len(targets)
    n_folds = min(N_FOLDS if n <= MANY else N_FOLDS_OF_MANY, n)
    shuffled = np.random.default_rng(0).permutation(n)
    if (
        not multi_label
    ):  # by label: the k-th example of a label goes where the last one of the label before left off
        shuffled = shuffled[np.argsort(targets.argmax(axis=1)[shuffled], kind="stable")]
    folds = np.empty(n, dtype=np.int64)
    folds[shuffled] = np.arange(n) % n_folds
    return folds


def scope_threshold(in_scope: Logits, beyond: Logits) -> float:
    """What separates the scores of scope of examples with a label (n,) and without one (m,).

    With both kinds, where the shares that are told rightly have the greatest sum (Youden 1950); without the
    second, where IN_SCOPE_REJECTED of the first kind lie below.
    """
    if not len(beyond):
        return float(np.quantile(in_scope, IN_SCOPE_REJECTED))
    candidates = np.unique(np.concatenate([in_scope, beyond]))
    rejected_in_scope = np.searchsorted(np.sort(in_scope), candidates) / len(in_scope)
    rejected_beyond = np.searchsorted(np.sort(beyond), candidates) / len(beyond)
    return float(candidates[np.argmax(rejected_beyond - rejected_in_scope)])


def auroc(positives: Logits, negatives: Logits) -> float:
    """Probability that a positive's score is greater than a negative's, ties counted half.

    >>> auroc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    order = np.sort(negatives)
    below = np.searchsorted(order, positives, side="left") + np.searchsorted(order, positives, side="right")
    return float(below.sum() / (2 * len(positives) * len(negatives)))


def label_reports(labels: Sequence[str], targets: Targets, predicted: Targets) -> tuple[LabelReport, ...]:
    """0 where nothing was predicted, or nothing is there."""
    right = (targets & predicted).sum(axis=0)
    n_predicted, n_examples = predicted.sum(axis=0), targets.sum(axis=0)
    return tuple(
        LabelReport(
            label=label,
            n_examples=int(n_examples[i]),
            precision=float(right[i] / max(1, n_predicted[i])),
            recall=float(right[i] / max(1, n_examples[i])),
            f1=float(2 * right[i] / max(1, n_predicted[i] + n_examples[i])),
        )
        for i, label in enumerate(labels)
    )


def confusions(labels: Sequence[str], targets: Targets, predicted: Targets) -> tuple[Confusion, ...]:
    """Pairs of one label each, most frequent first."""
    pairs = Counter(zip(targets.argmax(axis=1).tolist(), predicted.argmax(axis=1).tolist(), strict=True))
    wrong = sorted((-n, pair) for pair, n in pairs.items() if pair[0] != pair[1])
    return tuple(Confusion(labels[i], labels[j], -n) for n, (i, j) in wrong[:MAX_CONFUSIONS])


def _held_out_logits(
    vectors: Vectors, targets: Targets, folds: NDArray[np.int64], *, multi_label: bool, c: float
) -> Logits:
    """(n, k): of each example by a head trained on the other folds."""
    logits = np.empty(targets.shape, dtype=np.float64)
    for held_out in _masks(folds):
        head = train_head(vectors[~held_out], targets[~held_out], multi_label=multi_label, c=c)
        logits[held_out] = head.logits(vectors[held_out])
    return logits


def _masks(folds: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
    for fold in range(int(folds.max()) + 1):
        yield folds == fold


def _predictions(logits: Logits, *, multi_label: bool) -> Targets:
    empty = np.empty(0, dtype=np.float32)
    return LinearHead(empty, empty, multi_label).predictions(logits)


def _share(flags: NDArray[np.bool_]) -> float:
    return float(flags.mean())
