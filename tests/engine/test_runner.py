"""The runner of heads: several inputs and outputs per call, each sequence's outputs cut to its own length.

Its network is opened at its first use.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.network import Network
from app.engine.runner import Output, Runner, TokenSequence
from app.errors import ModelUnavailable
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


def runner_of(open_network: Callable[[], Network]) -> Runner:
    return Runner(
        open_network,
        OUTPUTS,
        runtime="expected",
        pad_id=9,
        max_tokens=64,
        has_segments=True,
        settings=Settings(),
    )


@pytest.fixture
def runner() -> Iterator[Runner]:
    made = runner_of(EchoingNetwork)
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


def test_the_network_is_opened_by_the_first_use(runner: Runner) -> None:
    assert not runner.is_loaded
    assert (runner.runtime, runner.fault, runner.activity) == ("expected", None, Activity())
    runner.run([sequence(3)])
    assert runner.is_loaded
    assert (runner.runtime, runner.activity.n_sequences) == ("echo", 1)


def test_loading_tells_its_seconds_to_whoever_waited_for_it(runner: Runner) -> None:
    assert runner.load() > 0
    assert runner.load() == 0


def test_first_uses_at_the_same_time_open_it_once() -> None:
    n_opened, all_wait = [], threading.Barrier(8)

    def open_network() -> EchoingNetwork:
        n_opened.append(1)
        threading.Event().wait(0.05)  # so that the others come meanwhile
        return EchoingNetwork()

    made = runner_of(open_network)

    def use() -> float:
        all_wait.wait()
        return float(made.run([sequence(3)])[0]["length"])

    with ThreadPoolExecutor(8) as pool:
        uses = [pool.submit(use) for _ in range(8)]
        assert [each.result() for each in uses] == [3.0] * 8
    assert len(n_opened) == 1
    made.close()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModelUnavailable("network.bin is damaged"), "network.bin is damaged"),
        (RuntimeError("inner"), "the log"),
    ],
)
def test_a_network_that_cannot_be_opened_is_tried_again(
    error: Exception, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [error, error]

    def open_network() -> EchoingNetwork:
        if failures:
            raise failures.pop()
        return EchoingNetwork()

    made = runner_of(open_network)
    for call in (made.load, lambda: made.run([sequence(3)])):
        with pytest.raises(ModelUnavailable, match=message) as caught:
            call()
        assert "inner" not in str(caught.value)
        assert not made.is_loaded
    assert sum("cannot be loaded" in record.message for record in caplog.records) == 2
    assert made.run([sequence(3)])[0]["length"] == 3
    made.close()


def test_a_closed_runner_opens_nothing() -> None:
    made = runner_of(lambda: pytest.fail("it was opened"))
    made.close()
    with pytest.raises(ModelUnavailable, match="is shut down"):
        made.run([sequence(3)])


def test_closing_waits_for_a_network_that_is_being_opened_and_closes_it() -> None:
    is_opening, may_open = threading.Event(), threading.Event()

    def open_network() -> EchoingNetwork:
        is_opening.set()
        may_open.wait(30)
        return EchoingNetwork()

    made = runner_of(open_network)
    with ThreadPoolExecutor(2) as pool:
        loading = pool.submit(made.load)
        assert is_opening.wait(30)
        closing = pool.submit(made.close)
        may_open.set()
        loading.result()
        closing.result()
    with pytest.raises(ModelUnavailable, match="is shut down"):
        made.run([sequence(3)])
