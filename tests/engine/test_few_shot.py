"""Cross-validation of few-shot classifiers: folds, reports and the threshold of scope."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

from app.engine.few_shot import (
    assign_folds,
    auroc,
    confusions,
    label_reports,
    scope_threshold,
    train_few_shot,
)
from app.engine.linear_head import Targets, Vectors
from app.labels import Confusion


def one_hot(owners: list[int], n_labels: int) -> Targets:
    targets: Targets = np.array(owners)[:, None] == np.arange(n_labels)
    return targets


def far_apart(owners: list[int], n_labels: int) -> Vectors:
    """Vectors of which those of a label are near each other."""
    noise = 0.1 * np.random.default_rng(1).normal(size=(len(owners), n_labels))
    return (np.eye(n_labels)[owners] + noise).astype(np.float32)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=60))
def test_every_label_is_spread_evenly_over_the_folds(owners: list[int]) -> None:
    folds = assign_folds(one_hot(owners, 4), multi_label=False)
    n_folds = int(folds.max()) + 1
    for label in range(4):
        sizes = np.bincount(folds[np.array(owners) == label], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(folds, assign_folds(one_hot(owners, 4), multi_label=False))


def test_two_examples_of_a_label_are_never_held_out_together() -> None:
    folds = assign_folds(one_hot([0, 1, 0, 1, 2, 2], 3), multi_label=False)
    assert all(folds[i] != folds[j] for i, j in ((0, 2), (1, 3), (4, 5)))


def test_labels_that_lie_apart_are_told_apart_when_held_out() -> None:
    owners = [0, 1, 2] * 8
    trained = train_few_shot(
        far_apart(owners, 3),
        one_hot(owners, 3),
        labels=["a", "b", "c"],
        multi_label=False,
        out_of_scope=np.empty((0, 3), np.float32),
    )
    assert (trained.report.accuracy, trained.report.macro_f1, trained.report.confusions) == (1, 1, ())
    assert (trained.report.n_folds, trained.report.scope_auroc, trained.report.n_out_of_scope) == (5, None, 0)
    assert trained.report.in_scope_rejected == pytest.approx(0.05, abs=1 / 24)


def test_labels_that_nothing_tells_apart_are_reported_so() -> None:
    """The same vectors carry both labels: held out, neither is found better than by chance."""
    vectors = np.repeat(np.random.default_rng(0).normal(size=(20, 5)), 2, axis=0).astype(np.float32)
    report = train_few_shot(
        vectors,
        one_hot([0, 1] * 20, 2),
        labels=["a", "b"],
        multi_label=False,
        out_of_scope=np.empty((0, 5), np.float32),
    ).report
    assert report.accuracy < 0.7
    assert {(each.label, each.predicted) for each in report.confusions} <= {("a", "b"), ("b", "a")}


def test_examples_out_of_scope_choose_the_threshold() -> None:
    owners = [0, 1] * 10
    trained = train_few_shot(
        far_apart(owners, 4),
        one_hot(owners, 2),
        labels=["a", "b"],
        multi_label=False,
        out_of_scope=far_apart([2, 3] * 5, 4) - np.float32(0.5),
    )
    assert trained.report.n_out_of_scope == 10
    assert trained.report.out_of_scope_rejected is not None
    assert trained.report.scope_auroc is not None
    assert trained.report.out_of_scope_rejected - trained.report.in_scope_rejected > 0.5
    assert trained.report.scope_auroc > 0.8


def test_several_labels_are_reported_for_themselves() -> None:
    owners = np.arange(40) % 4
    targets = np.stack([owners % 2 == 0, owners >= 2], axis=1)
    report = train_few_shot(
        far_apart(owners.tolist(), 4),
        targets,
        labels=["even", "high"],
        multi_label=True,
        out_of_scope=np.empty((0, 4), np.float32),
    ).report
    assert report.accuracy == 1
    assert [(each.label, each.n_examples, each.f1) for each in report.labels] == [
        ("even", 20, 1),
        ("high", 20, 1),
    ]


def test_the_threshold_of_scope_is_where_most_are_told_rightly() -> None:
    assert scope_threshold(np.array([3.0, 3.2, 4.0]), np.array([0.0, 1.0, 3.5])) == 3.0
    assert scope_threshold(np.arange(101.0), np.empty(0)) == pytest.approx(5.0)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40))
def test_auroc_is_that_of_scikit_learn(scored: list[tuple[bool, int]]) -> None:
    flags, scores = zip(*scored, strict=True)
    positives = np.array([s for f, s in scored if f], dtype=np.float64)
    negatives = np.array([s for f, s in scored if not f], dtype=np.float64)
    if len(positives) and len(negatives):
        assert auroc(positives, negatives) == pytest.approx(roc_auc_score(flags, scores))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_label_reports_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = map(list, zip(*pairs, strict=True))
    expected = precision_recall_fscore_support(truth, predicted, labels=[0, 1, 2], zero_division=0)
    reports = label_reports(["a", "b", "c"], one_hot(truth, 3), one_hot(predicted, 3))
    found = [[r.precision for r in reports], [r.recall for r in reports], [r.f1 for r in reports]]
    np.testing.assert_allclose(found, expected[:3])
    assert [r.n_examples for r in reports] == expected[3].tolist()


def test_confusions_come_most_frequent_first() -> None:
    truth, predicted = [0, 0, 1, 1, 2, 2], [1, 0, 0, 0, 1, 2]
    assert confusions(["a", "b", "c"], one_hot(truth, 3), one_hot(predicted, 3)) == (
        Confusion("b", "a", 2),
        Confusion("a", "b", 1),
        Confusion("c", "b", 1),
    )
