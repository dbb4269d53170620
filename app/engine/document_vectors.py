"""One vector for a whole document, from those of its passages."""

import numpy as np
from numpy.typing import NDArray

Embedded = NDArray[np.float32]


def document_vector(vectors: Embedded, n_tokens: NDArray[np.int64]) -> Embedded:
    """Average the passages' vectors by their length, and make the length 1 again.

    u = sum_i n_tokens[i] * v[i];  result = u / |u|

    >>> document_vector(np.eye(2, dtype=np.float32), np.array([4, 3])).tolist()
    [0.800000011920929, 0.6000000238418579]

    Args:
        vectors: (n, d), each of length 1, n at least 1.
        n_tokens: (n,), of each passage.

    Returns:
        (d,)
    """
    total: Embedded = n_tokens.astype(np.float32) @ vectors  # (d,)
    length = np.float32(np.linalg.norm(total))
    # Passages that point against each other may leave no direction; then the first one's is as good as any.
    unit: Embedded = vectors[0] if length == 0 else total / length
    return unit
