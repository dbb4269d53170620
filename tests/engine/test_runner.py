"""The runner of heads: several inputs and outputs per call, each sequence's outputs cut to its own length."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from app.engine.runner import Output, Runner, TokenSequence
from app.settings import Settings


class EchoingNetwork:
    """Gives the number of tokens; per token (id, segment); per pair of tokens the sum of their ids."""

    runtime = "echo"
    n_lanes = 2

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        ids, mask, segments = inputs
        outputs = (
            mask.sum(1),
            np.stack([ids, segments], axis=2),
            (ids[:, :, None] + ids[:, None, :])[:, None],
        )
        return [output.astype(np.float32) for output in outputs]


OUTPUTS = (Output("length"), Output("tokens", (1,)), Output("sums", (2, 3)))


@pytest.fixture
def runner() -> Iterator[Runner]:
    made = Runner(EchoingNetwork(), OUTPUTS, pad_id=9, max_tokens=64, has_segments=True, settings=Settings())
    yield made
    made.close()


def sequence(n_tokens: int, n_of_first: int | None = None) -> TokenSequence:
    ids = np.arange(n_tokens, dtype=np.int32)
    segments = None if n_of_first is None else (ids >= n_of_first).astype(np.int32)
    return TokenSequence(ids, segments)


def test_outputs_are_those_of_each_sequence_without_padding(runner: Runner) -> None:
    sequences = [sequence(5, 2), sequence(60, 30), sequence(1), sequence(17)]
    for outputs, each in zip(runner.run(sequences), sequences, strict=True):
        n, segments = len(each), each.segments
        assert outputs["length"] == n
        assert outputs["tokens"][:, 0].tolist() == list(range(n))
        assert outputs["tokens"][:, 1].tolist() == ([0] * n if segments is None else segments.tolist())
        assert outputs["sums"].tolist() == [np.add.outer(each.ids, each.ids).tolist()]


def test_no_sequences_have_no_outputs(runner: Runner) -> None:
    assert runner.run([]) == []
