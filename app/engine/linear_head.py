"""A linear classifier on a bi-encoder's vectors, and its training by regularised maximum likelihood.

One label: multinomial logistic regression. Several labels: an independent logistic regression for each.
"""

from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Vectors = NDArray[np.float32]
Logits = NDArray[np.float64]
Targets = NDArray[np.bool_]
"""(n, k): which labels each text has."""

ONE_AT_A_TIME = Lock()
"""The limit of threads is the process's; two that overlap would leave it behind."""
MAX_ITERATIONS = 300
GRADIENT_TOLERANCE = 1e-4
"""Of the greatest component, for the loss of an average example."""


@dataclass(frozen=True, slots=True)
class LinearHead:
    weights: Vectors  # (k, d)
    biases: NDArray[np.float32]  # (k,)
    multi_label: bool

    def logits(self, vectors: Vectors) -> Logits:
        """(n, k) of (n, d) vectors."""
        return (vectors @ self.weights.T + self.biases).astype(np.float64)

    def probabilities(self, logits: Logits) -> Logits:
        """(n, k): rows sum to 1, unless each label stands for itself."""
        if self.multi_label:
            return sigmoid(logits)
        return np.exp(logits - log_sum_exp(logits)[:, None])

    def scope_scores(self, logits: Logits) -> Logits:
        """(n,): greater is nearer to what the head was trained on.

        One label: log sum_k exp(logit_k), the negative free energy. Source: Liu et al. 2020, Energy-based
        out-of-distribution detection, section 3. Several labels: the greatest logit.
        """
        scores: Logits = logits.max(axis=1) if self.multi_label else log_sum_exp(logits)
        return scores

    def predictions(self, logits: Logits) -> Targets:
        """(n, k): the likeliest label, or all that are likelier than not."""
        if self.multi_label:
            return logits > 0
        likeliest: Targets = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
        return likeliest


def log_sum_exp(logits: Logits) -> Logits:
    """(n,) of (n, k)."""
    greatest = logits.max(axis=1)
    sums: Logits = greatest + np.log(np.exp(logits - greatest[:, None]).sum(axis=1))
    return sums


def sigmoid(logits: Logits) -> Logits:
    """1 / (1 + exp(-z)), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.exp(-np.logaddexp(0, -logits))


def train_head(vectors: Vectors, targets: Targets, *, multi_label: bool, c: float) -> LinearHead:
    """Minimise c * sum_i loss_i(W, b) + |W|^2 / 2 by L-BFGS, as scikit-learn's LogisticRegression(C=c) does.

    Args:
        vectors: (n, d).
        targets: (n, k); with one label each, exactly one True per row.
        c: greater trusts the examples more.
    """
    # Here, because it takes memory that a service in which nobody trains does without.
    from scipy.optimize import minimize  # noqa: PLC0415

    n, d = vectors.shape
    k = targets.shape[1]
    wanted = targets.astype(np.float32)
    scale = 1.0 / (c * n)

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        parameters = flat.reshape(k, d + 1).astype(np.float32)
        weights, biases = parameters[:, :d], parameters[:, d]
        logits = vectors @ weights.T + biases  # (n, k)
        if multi_label:
            losses = np.logaddexp(0, logits) - wanted * logits
            residuals = sigmoid(logits.astype(np.float64)).astype(np.float32) - wanted
        else:
            greatest = logits.max(axis=1, keepdims=True)
            powers = np.exp(logits - greatest)
            sums = powers.sum(axis=1, keepdims=True)
            losses = np.log(sums) + greatest - (wanted * logits).sum(axis=1, keepdims=True)
            residuals = powers / sums - wanted
        gradient = np.empty_like(parameters)
        gradient[:, :d] = residuals.T @ vectors / n + scale * weights
        gradient[:, d] = residuals.mean(axis=0)
        loss = float(losses.sum(dtype=np.float64)) / n + 0.5 * scale * float((weights**2).sum())
        return loss, gradient.astype(np.float64).ravel()

    # Products this small gain little from a second thread, and on a busy machine wait for it at every step:
    # 770 examples took 184 s instead of 7.
    with ONE_AT_A_TIME, threadpool_limits(limits=1, user_api="blas"):
        found = minimize(
            loss_and_gradient,
            np.zeros(k * (d + 1)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_ITERATIONS, "gtol": GRADIENT_TOLERANCE, "ftol": 1e-9},
        )
    parameters = found.x.reshape(k, d + 1).astype(np.float32)
    return LinearHead(np.ascontiguousarray(parameters[:, :d]), parameters[:, d].copy(), multi_label)
