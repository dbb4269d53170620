"""Labelled examples: whether a classifier can be trained from them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.inputs import is_blank
from app.errors import BadExamples, BlankText
from app.labels import Example

MAX_EXAMPLES = 20_000
"""About a minute of encoding short texts and training on two cores."""
MAX_LABELS = 1_000
MAX_LABEL_CHARS = 200
MIN_PER_LABEL = 2
"""One to learn from while the other is held out."""


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Examples without exact repetitions, and which labels each has."""

    examples: Sequence[Example]
    labels: Sequence[str]
    """In code point order."""
    targets: NDArray[np.bool_]  # (n, k)
    is_out_of_scope: NDArray[np.bool_]  # (n,)

    @classmethod
    def of(cls, examples: Sequence[Example], *, multi_label: bool) -> "ExampleSet":
        """
        Raises:
            BlankText: an example's text is blank.
            BadExamples: too many or too few, or their labels are not what they should be.
        """
        if len(examples) > MAX_EXAMPLES:
            raise BadExamples(
                f"{len(examples)} examples; at most {MAX_EXAMPLES} are allowed", where=("examples",)
            )
        for i, example in enumerate(examples):
            _check(i, example, multi_label=multi_label)
        distinct = list(dict.fromkeys(examples))
        labels = _checked_labels(Counter(label for each in distinct for label in each.labels))
        columns = {label: column for column, label in enumerate(labels)}
        targets = np.zeros((len(distinct), len(labels)), dtype=np.bool_)
        for row, example in enumerate(distinct):
            targets[row, [columns[label] for label in example.labels]] = True
        is_out_of_scope = np.array([not each.labels and not multi_label for each in distinct], dtype=np.bool_)
        _check_contrast(labels, targets, multi_label=multi_label)
        return cls(distinct, labels, targets, is_out_of_scope)


def _check(i: int, example: Example, *, multi_label: bool) -> None:
    if is_blank(example.text):
        raise BlankText("is blank: it needs at least one visible character", where=("examples", i, "text"))
    for label in example.labels:
        if is_blank(label) or len(label) > MAX_LABEL_CHARS:
            raise BadExamples(
                f"a label has 1 to {MAX_LABEL_CHARS} characters, one of them visible", where=("examples", i)
            )
    if not multi_label and len(example.labels) > 1:
        raise BadExamples(
            f"has {len(example.labels)} labels; with multi_label=true several are allowed",
            where=("examples", i),
        )
    if len(set(example.labels)) < len(example.labels):
        raise BadExamples("has the same label twice", where=("examples", i))


def _checked_labels(counts: Counter[str]) -> Sequence[str]:
    if len(counts) > MAX_LABELS:
        raise BadExamples(f"{len(counts)} labels; at most {MAX_LABELS} are allowed", where=("examples",))
    for label, n in sorted(counts.items()):
        if n < MIN_PER_LABEL:
            raise BadExamples(
                f"the label {label!r} has {n} example; each needs at least {MIN_PER_LABEL} different ones",
                where=("examples",),
            )
    return sorted(counts)


def _check_contrast(labels: Sequence[str], targets: NDArray[np.bool_], *, multi_label: bool) -> None:
    if not multi_label and len(labels) < 2:
        raise BadExamples(f"{len(labels)} different labels; at least two are needed", where=("examples",))
    if multi_label and not labels:
        raise BadExamples("no example has a label", where=("examples",))
    if multi_label:
        for label, n_without in zip(labels, (~targets).sum(axis=0), strict=True):
            if n_without < MIN_PER_LABEL:
                raise BadExamples(
                    f"all but {n_without} examples have the label {label!r}; "
                    f"at least {MIN_PER_LABEL} must be without it",
                    where=("examples",),
                )
