"""A network in some runtime: arrays of token ids in, arrays of numbers out."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Network(Protocol):
    runtime: str
    """With number format and version."""
    n_lanes: int
    """Threads that may call `forward` at the same time."""

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        """The outputs, each (n, ...), of inputs (n, t): ids, mask and, where the network has them, segment
        ids. The arrays are the caller's own."""
