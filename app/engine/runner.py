"""Runs the network of a head: token sequences in, the outputs of each sequence out, cut to its own length.

The network is opened at its first use: most services never use some of the models that they have, and each
costs about half a second at start and a hundred megabytes.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.batching import BatchingOwner
from app.engine.network import Network
from app.engine.shapes import padded
from app.engine.tokenizer import Ids
from app.errors import BifocalError, ModelUnavailable
from app.settings import Settings

logger = logging.getLogger(__name__)

Outputs = Mapping[str, NDArray[np.float32]]
"""Of one sequence, by name."""


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """What the network reads of one text or pair, special tokens included."""

    ids: Ids  # (t,)
    segments: Ids | None = None  # (t,), 0 or 1; None: all 0

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Output:
    """One of a network's outputs. The first axis runs over the sequences of the batch."""

    name: str
    token_axes: tuple[int, ...] = ()
    """Further axes that run over tokens: (1,) for scores of tokens, (3, 4) for attention of (layer, head)."""


@dataclass(frozen=True, slots=True)
class _Opened:
    network: Network
    owner: BatchingOwner[TokenSequence, Outputs]


class Runner:
    """Safe to call from any thread: one owner runs the network and batches concurrent calls by tokens.

    Args:
        open_network: called at the first use, and again where that failed.
        outputs: of the network, in its order.
        runtime: that the network is going to have, as far as its files tell.
        pad_id: token id that fills up short sequences.
        max_tokens: of one sequence, special tokens included.
        has_segments: whether the network's third input are segment ids.
        settings: limits of batches and of concurrent calls.
        farewell_s: as for `BatchingOwner`.
    """

    def __init__(
        self,
        open_network: Callable[[], Network],
        outputs: Sequence[Output],
        *,
        runtime: str,
        pad_id: int,
        max_tokens: int,
        has_segments: bool,
        settings: Settings,
        farewell_s: float = 0.0,
    ) -> None:
        self.max_tokens = max_tokens
        self.has_segments = has_segments
        self._open_network = open_network
        self._outputs = tuple(outputs)
        self._runtime = runtime
        self._pad_id = pad_id
        self._settings = settings
        self._farewell_s = farewell_s
        self._opened: _Opened | None = None
        self._is_closed = False
        self._opening = Lock()

    @property
    def runtime(self) -> str:
        """What runs the network, or would."""
        return self._runtime if self._opened is None else self._opened.network.runtime

    @property
    def is_loaded(self) -> bool:
        return self._opened is not None

    @property
    def fault(self) -> str | None:
        """Why it answers no more; None while it does."""
        return None if self._opened is None else self._opened.owner.fault

    def load(self) -> float:
        """Open the network where it is not; gives the seconds that the caller waited for it.

        Raises:
            ModelUnavailable: it cannot be opened, which the next call tries again; or closed.
        """
        if self._opened is not None:
            return 0.0
        began = time.monotonic()
        self._ready()
        return time.monotonic() - began

    def run(self, sequences: Sequence[TokenSequence]) -> list[Outputs]:
        """Outputs of the sequences, in their order; each array without the axis of the batch.

        Raises:
            Overloaded: too many other requests use the model.
            ModelUnavailable: closed, or it cannot be loaded.
        """
        return self._ready().in_turns(sequences)

    def run_until(self, sequences: Sequence[TokenSequence], *, deadline: float) -> list[Outputs | None]:
        """As `run`, first sequences first, until `deadline` of `time.monotonic`; None for what was late."""
        return self._ready().until(sequences, deadline=deadline)

    @property
    def activity(self) -> Activity:
        return Activity() if self._opened is None else self._opened.owner.activity

    def close(self) -> None:
        with self._opening:
            self._is_closed = True
        if self._opened is not None:
            self._opened.owner.close()

    def _ready(self) -> BatchingOwner[TokenSequence, Outputs]:
        opened = self._opened
        if opened is None:
            with self._opening:
                if self._is_closed:
                    raise ModelUnavailable("the model is shut down")
                opened = self._opened or self._open()
                self._opened = opened
        return opened.owner

    def _open(self) -> _Opened:
        try:
            network = self._open_network()
        except BifocalError:
            logger.exception("a model cannot be loaded")
            raise
        except Exception as error:
            logger.exception("a model cannot be loaded")
            raise ModelUnavailable("a model could not be loaded; the log says why") from error
        owner: BatchingOwner[TokenSequence, Outputs] = BatchingOwner(
            partial(self._compute, network),
            n_lanes=network.n_lanes,
            max_batch_tokens=self._settings.max_batch_tokens,
            max_queue=self._settings.max_queue,
            call_limit_s=self._settings.model_limit_s,
            farewell_s=self._farewell_s,
        )
        return _Opened(network, owner)

    def _compute(self, network: Network, sequences: Sequence[TokenSequence]) -> list[Outputs]:
        ids, mask = padded([s.ids for s in sequences], pad_id=self._pad_id, max_tokens=self.max_tokens)
        inputs = [ids, mask]
        if self.has_segments:
            inputs.append(_segments(sequences, like=ids))
        arrays = network.forward(*inputs)
        return [
            {
                output.name: _cut(np.asarray(array[row]), output.token_axes, len(sequence))
                for output, array in zip(self._outputs, arrays, strict=True)
            }
            for row, sequence in enumerate(sequences)
        ]


def _segments(sequences: Sequence[TokenSequence], *, like: NDArray[np.int64]) -> NDArray[np.int64]:
    segments = np.zeros_like(like)
    for row, sequence in enumerate(sequences):
        if sequence.segments is not None:
            segments[row, : len(sequence)] = sequence.segments
    return segments


def _cut(array: NDArray[np.float32], token_axes: Sequence[int], n_tokens: int) -> NDArray[np.float32]:
    """The row of one sequence without its padding; `token_axes` count the axis of the batch."""
    places = tuple(slice(n_tokens) if axis + 1 in token_axes else slice(None) for axis in range(array.ndim))
    return array[places] if token_axes else array
