"""Runs the network of a head: token sequences in, the outputs of each sequence out, cut to its own length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.batching import BatchingOwner
from app.engine.network import Network
from app.engine.shapes import padded
from app.engine.tokenizer import Ids
from app.settings import Settings

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


class Runner:
    """Safe to call from any thread: one owner runs the network and batches concurrent calls by tokens.

    Args:
        outputs: of the network, in its order.
        pad_id: token id that fills up short sequences.
        max_tokens: of one sequence, special tokens included.
        has_segments: whether the network's third input are segment ids.
        settings: limits of batches and of concurrent calls.
        farewell_s: as for `BatchingOwner`.
    """

    def __init__(
        self,
        network: Network,
        outputs: Sequence[Output],
        *,
        pad_id: int,
        max_tokens: int,
        has_segments: bool,
        settings: Settings,
        farewell_s: float = 0.0,
    ) -> None:
        self.runtime = network.runtime
        self.max_tokens = max_tokens
        self.has_segments = has_segments
        self._network = network
        self._outputs = tuple(outputs)
        self._pad_id = pad_id
        self._owner: BatchingOwner[TokenSequence, Outputs] = BatchingOwner(
            self._compute,
            n_lanes=network.n_lanes,
            max_batch_tokens=settings.max_batch_tokens,
            max_queue=settings.max_queue,
            call_limit_s=settings.model_limit_s,
            farewell_s=farewell_s,
        )

    @property
    def fault(self) -> str | None:
        """Why it answers no more; None while it does."""
        return self._owner.fault

    def run(self, sequences: Sequence[TokenSequence]) -> list[Outputs]:
        """Outputs of the sequences, in their order; each array without the axis of the batch.

        Raises:
            Overloaded: too many other requests use the model.
            ModelUnavailable: closed.
        """
        return self._owner.in_turns(sequences)

    def run_until(self, sequences: Sequence[TokenSequence], *, deadline: float) -> list[Outputs | None]:
        """As `run`, first sequences first, until `deadline` of `time.monotonic`; None for what was late."""
        return self._owner.until(sequences, deadline=deadline)

    @property
    def activity(self) -> Activity:
        return self._owner.activity

    def close(self) -> None:
        self._owner.close()

    def _compute(self, sequences: Sequence[TokenSequence]) -> list[Outputs]:
        ids, mask = padded([s.ids for s in sequences], pad_id=self._pad_id, max_tokens=self.max_tokens)
        inputs = [ids, mask]
        if self.has_segments:
            inputs.append(_segments(sequences, like=ids))
        arrays = self._network.forward(*inputs)
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
