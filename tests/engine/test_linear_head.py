"""Linear heads, compared with scikit-learn's logistic regression."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from app.engine.linear_head import LinearHead, Targets, Vectors, log_sum_exp, sigmoid, train_head

N_LABELS, DIMENSIONS = 4, 12


@pytest.fixture(scope="module")
def clusters() -> tuple[Vectors, Targets]:
    """200 unit vectors around four centres that overlap."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(N_LABELS, DIMENSIONS))
    owners = np.repeat(np.arange(N_LABELS), 50)
    vectors = centres[owners] + 1.5 * random.normal(size=(200, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), owners[:, None] == np.arange(N_LABELS)


@pytest.mark.parametrize("c", [1.0, 10.0])
def test_single_labels_are_fitted_as_scikit_learn_does(clusters: tuple[Vectors, Targets], c: float) -> None:
    vectors, targets = clusters
    reference = LogisticRegression(C=c, tol=1e-8, max_iter=2000).fit(vectors, targets.argmax(axis=1))
    head = train_head(vectors, targets, multi_label=False, c=c)
    found = head.probabilities(head.logits(vectors))
    np.testing.assert_allclose(found, reference.predict_proba(vectors), atol=2e-3)
    assert np.array_equal(head.predictions(head.logits(vectors)).argmax(axis=1), reference.predict(vectors))


@pytest.mark.parametrize("c", [1.0, 10.0])
def test_several_labels_are_each_fitted_as_scikit_learn_does(
    clusters: tuple[Vectors, Targets], c: float
) -> None:
    vectors, targets = clusters
    overlapping = targets | np.roll(targets, 1, axis=1)
    head = train_head(vectors, overlapping, multi_label=True, c=c)
    found = head.probabilities(head.logits(vectors))
    for label in range(N_LABELS):
        reference = LogisticRegression(C=c, tol=1e-8, max_iter=2000).fit(vectors, overlapping[:, label])
        np.testing.assert_allclose(found[:, label], reference.predict_proba(vectors)[:, 1], atol=5e-3)


def test_the_score_of_scope_is_the_log_of_summed_exponentials() -> None:
    logits = np.array([[0.0, np.log(3.0)], [1000.0, 1000.0]])
    assert log_sum_exp(logits).tolist() == pytest.approx([np.log(4.0), 1000 + np.log(2.0)])


def test_with_several_labels_scope_is_the_greatest_logit_and_any_number_may_be_predicted() -> None:
    head = LinearHead(np.zeros((2, 1), np.float32), np.zeros(2, np.float32), multi_label=True)
    logits = np.array([[-2.0, -1.0], [0.5, 0.25]])
    assert head.scope_scores(logits).tolist() == [-1.0, 0.5]
    assert head.predictions(logits).tolist() == [[False, False], [True, True]]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_probabilities_of_any_logits_are_finite_and_sum_to_one(row: list[float]) -> None:
    empty = np.empty(0, np.float32)
    probabilities = LinearHead(empty, empty, multi_label=False).probabilities(np.array([row]))
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)
    assert np.isfinite(sigmoid(np.array(row))).all()
