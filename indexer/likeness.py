"""How alike two networks' outputs are."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Likeness:
    """Gathers what an original and its copy say of the same inputs.

    r = sum_c cov_c(a, b) / sqrt(sum_c var_c(a) sum_c var_c(b)), over the columns c: what a column has in
    common for all inputs, such as the bias of a class, counts for nothing. With one column it is Pearson's r.

    >>> likeness = Likeness()
    >>> likeness.add(np.array([[1.0, 5.0], [2.0, 5.0]]), np.array([[3.0, 7.0], [5.0, 7.0]]))
    >>> round(likeness.value, 3)
    1.0
    """

    def __init__(self) -> None:
        self._n = 0
        self._sums: list[Floats] = []

    def add(self, original: Floats, copy: Floats) -> None:
        """Rows of both, (n, columns)."""
        a, b = original.astype(np.float64), copy.astype(np.float64)
        sums = [a.sum(0), b.sum(0), (a * b).sum(0), (a * a).sum(0), (b * b).sum(0)]
        self._sums = [x + y for x, y in zip(self._sums, sums, strict=True)] if self._sums else sums
        self._n += len(a)

    @property
    def value(self) -> float:
        """-1..1; 1 if nothing varies in either."""
        sum_a, sum_b, sum_ab, sum_aa, sum_bb = self._sums
        covariance = float((sum_ab - sum_a * sum_b / self._n).sum())
        variances = float((sum_aa - sum_a**2 / self._n).sum() * (sum_bb - sum_b**2 / self._n).sum())
        return covariance / variances**0.5 if variances > 0 else 1.0


class MeanCosine:
    """The same for vectors that are compared by cosine."""

    def __init__(self) -> None:
        self._cosines: list[float] = []

    def add(self, original: Floats, copy: Floats) -> None:
        """Vectors of length 1, (n, d)."""
        self._cosines += np.einsum("nd,nd->n", original, copy).tolist()

    @property
    def value(self) -> float:
        return float(np.mean(self._cosines))
