"""The owner of a model under concurrent calls, with a network that can be held and told to fail."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.batching import BatchingOwner
from app.engine.shapes import cut_batches, cut_batches_in_order, even_budget, padded, padded_length
from app.engine.tokenizer import Ids
from app.errors import ModelUnavailable, Overloaded

PATIENCE_S = 30
"""Until a test that hangs fails; no test takes nearly as long."""
POISON = 666
MAX_QUEUE = 8


Sums = tuple[float, float]
Owner = BatchingOwner[Ids, Sums]


class SummingNetwork:
    """Gives each sequence (sum of its ids, its length); waits while held; fails on POISON."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Semaphore(0)
        self.shapes: list[tuple[int, ...]] = []

    def compute(self, sequences: Sequence[Ids]) -> list[Sums]:
        ids, mask = padded(sequences, pad_id=0, max_tokens=100)
        self.shapes.append(ids.shape)
        self.begun.release()
        assert self.open.wait(PATIENCE_S)
        if (ids == POISON).any():
            raise ArithmeticError("poisoned")
        return [(float(total), float(n)) for total, n in zip((ids * mask).sum(1), mask.sum(1), strict=True)]


def sequence(*ids: int) -> Ids:
    return np.array(ids, dtype=np.int32)


def expected(sequences: Sequence[Ids]) -> list[Sums]:
    return [(float(s.sum()), float(len(s))) for s in sequences]


@pytest.fixture
def network() -> SummingNetwork:
    return SummingNetwork()


@pytest.fixture
def owner(network: SummingNetwork) -> Iterator[Owner]:
    made = make_owner(network)
    yield made
    network.open.set()
    made.close()


def make_owner(
    network: SummingNetwork, *, n_lanes: int = 1, max_batch_tokens: int = 128, **options: Any
) -> Owner:
    return Owner(
        network.compute,
        n_lanes=n_lanes,
        max_batch_tokens=max_batch_tokens,
        max_queue=MAX_QUEUE,
        **options,
    )


@pytest.fixture
def in_background() -> Iterator[Callable[..., Future[Any]]]:
    with ThreadPoolExecutor(32) as pool:
        yield pool.submit


def hold(network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]) -> Future[Any]:
    """Keep the owner busy with one call, so that what comes next waits."""
    network.open.clear()
    held = in_background(owner.encode, [sequence(1)])
    assert network.begun.acquire(timeout=PATIENCE_S)
    return held


def wait_until_queued(owner: Owner, n: int) -> None:
    for _ in range(PATIENCE_S * 1000):
        if len(owner._waiting) == n:
            return
        threading.Event().wait(0.001)
    pytest.fail(f"{len(owner._waiting)} calls wait, not {n}")


def test_results_come_in_the_order_of_the_sequences(owner: Owner) -> None:
    sequences = [sequence(*range(n)) for n in (3, 40, 1, 17, 90)]
    assert owner.encode(sequences) == expected(sequences)


def test_calls_that_wait_share_a_batch(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    held = hold(network, owner, in_background)
    waiting = [in_background(owner.encode, [sequence(n)]) for n in range(2, 6)]
    wait_until_queued(owner, 4)
    network.open.set()
    assert sorted(f.result(PATIENCE_S) for f in waiting) == [[(n, 1.0)] for n in (2.0, 3.0, 4.0, 5.0)]
    assert held.result(PATIENCE_S) == [(1, 1)]
    assert network.shapes == [(1, 16), (4, 16)]


def test_call_beyond_the_queue_is_refused_at_once_and_the_queue_recovers(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    hold(network, owner, in_background)
    waiting = [in_background(owner.encode, [sequence(1), sequence(2)]) for _ in range(MAX_QUEUE // 2)]
    wait_until_queued(owner, MAX_QUEUE // 2)
    with pytest.raises(Overloaded, match="8 texts wait for the model already, at most 8 may") as caught:
        owner.encode([sequence(3)])
    assert caught.value.retry_after_s >= 1
    network.open.set()
    for future in waiting:
        assert future.result(PATIENCE_S) == [(1, 1), (2, 1)]
    assert owner.encode([sequence(3)]) == [(3, 1)]


def test_error_reaches_only_the_call_it_belongs_to(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    hold(network, owner, in_background)
    good = in_background(owner.encode, [sequence(2)])
    bad = in_background(owner.encode, [sequence(POISON)])
    also_good = in_background(owner.encode, [sequence(3)])
    wait_until_queued(owner, 3)
    network.open.set()
    assert good.result(PATIENCE_S) == [(2, 1)]
    assert also_good.result(PATIENCE_S) == [(3, 1)]
    with pytest.raises(ArithmeticError, match="poisoned"):
        bad.result(PATIENCE_S)
    assert owner.encode([sequence(4)]) == [(4, 1)]


def test_call_larger_than_the_queue_is_done_and_lets_others_through(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    network.open.clear()
    sequences = [sequence(n) for n in range(20 * MAX_QUEUE)]
    bulk = in_background(owner.encode, sequences)
    assert network.begun.acquire(timeout=PATIENCE_S)
    single = in_background(owner.encode, [sequence(7)])
    wait_until_queued(owner, 2)
    network.open.set()
    assert single.result(PATIENCE_S) == [(7, 1)]
    assert bulk.result(PATIENCE_S) == expected(sequences)


def test_lanes_share_the_batches_of_one_call(
    network: SummingNetwork, in_background: Callable[..., Future[Any]]
) -> None:
    owner = make_owner(network, n_lanes=2, max_batch_tokens=32)
    network.open.clear()
    sequences = [sequence(n) for n in range(4)]
    call = in_background(owner.encode, sequences)
    assert network.begun.acquire(timeout=PATIENCE_S)
    assert network.begun.acquire(timeout=PATIENCE_S)
    assert network.shapes == [(2, 16), (2, 16)]
    network.open.set()
    assert call.result(PATIENCE_S) == expected(sequences)
    owner.close()


def test_second_large_call_at_the_same_time_is_refused(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    network.open.clear()
    sequences = [sequence(n) for n in range(2 * MAX_QUEUE)]
    bulk = in_background(owner.encode, sequences)
    assert network.begun.acquire(timeout=PATIENCE_S)
    with pytest.raises(Overloaded, match="another large batch"):
        owner.encode(sequences)
    network.open.set()
    assert bulk.result(PATIENCE_S) == expected(sequences)
    assert owner.encode(sequences) == expected(sequences)


def test_close_finishes_what_waits_and_refuses_what_comes(
    network: SummingNetwork, in_background: Callable[..., Future[Any]]
) -> None:
    owner = make_owner(network)
    held = hold(network, owner, in_background)
    waiting = in_background(owner.encode, [sequence(2)])
    wait_until_queued(owner, 1)
    closing = in_background(owner.close)
    network.open.set()
    closing.result(PATIENCE_S)
    assert held.result(PATIENCE_S) == [(1, 1)]
    assert waiting.result(PATIENCE_S) == [(2, 1)]
    with pytest.raises(ModelUnavailable, match="shut down"):
        owner.encode([sequence(3)])
    owner.close()


def test_nothing_is_computed_for_no_sequences(network: SummingNetwork, owner: Owner) -> None:
    assert owner.encode([]) == owner.in_turns([]) == []
    assert network.shapes == []


def test_padding_never_exceeds_what_the_model_takes(network: SummingNetwork, owner: Owner) -> None:
    owner.encode([sequence(*range(99))])
    assert network.shapes == [(1, 100)]


def test_many_callers_on_several_lanes_get_their_own_results(network: SummingNetwork) -> None:
    owner = make_owner(network, n_lanes=3, max_batch_tokens=64)
    calls = [[sequence(*range(i % 50 + j)) for j in range(1, 3)] for i in range(200)]
    with ThreadPoolExecutor(4) as pool:
        for call, results in zip(calls, pool.map(owner.encode, calls), strict=True):
            assert results == expected(call)
    owner.close()


@given(lengths=st.lists(st.integers(1, 256), max_size=60), budget=st.integers(64, 4096))
def test_batches_hold_every_sequence_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(cut_batches(lengths, max_batch_tokens=budget))
    assert sorted(i for rows in batches for i in rows) == list(range(len(lengths)))
    for rows in batches:
        longest = padded_length(max(lengths[i] for i in rows))
        assert len(rows) == 1 or len(rows) * longest <= budget
        assert all(2 * padded_length(lengths[i]) >= longest for i in rows)


@given(
    lengths=st.lists(st.integers(100, 256), min_size=1, max_size=60),
    n_lanes=st.integers(1, 4),
    most=st.integers(512, 4096),
)
def test_lanes_that_share_batches_get_about_the_same(lengths: list[int], n_lanes: int, most: int) -> None:
    """None has more than a batch's tokens beyond its share."""
    budget = even_budget(lengths, n_lanes=n_lanes, max_batch_tokens=most)
    assert 0 < budget <= most
    tokens = [
        sum(padded_length(lengths[i]) for i in rows) for rows in cut_batches(lengths, max_batch_tokens=budget)
    ]
    total = sum(map(padded_length, lengths))
    lanes = [0] * n_lanes
    for n in tokens:
        lanes[lanes.index(min(lanes))] += n
    assert max(lanes) <= total / n_lanes + budget


def test_twenty_pairs_are_divided_evenly_between_two_lanes() -> None:
    budget = even_budget([160] * 20, n_lanes=2, max_batch_tokens=1024)
    assert [len(rows) for rows in cut_batches([160] * 20, max_batch_tokens=budget)] == [5, 5, 5, 5]
    assert even_budget([], n_lanes=2, max_batch_tokens=1024) == 1024


@given(lengths=st.lists(st.integers(1, 256), max_size=60), budget=st.integers(64, 4096))
def test_batches_in_order_hold_every_sequence_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(cut_batches_in_order(lengths, max_batch_tokens=budget))
    assert [i for rows in batches for i in rows] == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * padded_length(max(lengths[i] for i in rows)) <= budget


def test_calls_that_take_turns_may_be_larger_than_the_queue_and_run_beside_each_other(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    network.open.clear()
    calls = [[sequence(i, n) for n in range(3 * MAX_QUEUE)] for i in range(MAX_QUEUE)]
    answers = [in_background(owner.in_turns, call) for call in calls]
    wait_until_turns(owner, MAX_QUEUE)
    with pytest.raises(Overloaded, match="8 requests use the model already"):
        owner.in_turns(calls[0])
    network.open.set()
    assert [answer.result(PATIENCE_S) for answer in answers] == [expected(call) for call in calls]
    assert owner.in_turns(calls[0]) == expected(calls[0])


def wait_until_turns(owner: Owner, n: int) -> None:
    for _ in range(PATIENCE_S * 1000):
        if owner._n_taking_turns == n:
            return
        threading.Event().wait(0.001)
    pytest.fail(f"{owner._n_taking_turns} calls take turns, not {n}")


def test_a_deadline_leaves_out_what_was_not_computed_and_nothing_more_is(
    network: SummingNetwork, owner: Owner, in_background: Callable[..., Future[Any]]
) -> None:
    """A batch of 128 tokens, a quarter of it per turn: two sequences begin."""
    sequences = [sequence(n) for n in range(1, 9)]
    network.open.clear()
    answer = in_background(owner.until, sequences, deadline=time.monotonic() + 0.2)
    results = answer.result(PATIENCE_S)
    network.open.set()
    assert results == [None] * 8
    assert owner.in_turns([sequence(5)]) == [(5, 1)]
    assert network.shapes == [(2, 16), (1, 16)]
    assert owner.until(sequences, deadline=time.monotonic() + PATIENCE_S) == expected(sequences)


def test_a_deadline_keeps_what_was_computed_before_it() -> None:
    class StopsAfterTheFirst(SummingNetwork):
        def compute(self, sequences: Sequence[Ids]) -> list[Sums]:
            results = super().compute(sequences)
            self.open.clear()
            return results

    network = StopsAfterTheFirst()
    owner = make_owner(network)
    sequences = [sequence(n) for n in range(1, 9)]
    results = owner.until(sequences, deadline=time.monotonic() + 1)
    network.open.set()
    closing = threading.Thread(target=owner.close)
    closing.start()
    while closing.is_alive():
        network.open.set()
        closing.join(0.01)
    assert results == [*expected(sequences[:2]), *[None] * 6]


def test_a_deadline_that_has_passed_costs_nothing(network: SummingNetwork, owner: Owner) -> None:
    assert owner.until([sequence(1)], deadline=time.monotonic()) == [None]
    assert network.shapes == []


def test_call_of_the_network_that_does_not_return_fails_all_callers_and_then_ends_the_process(
    network: SummingNetwork, in_background: Callable[..., Future[Any]]
) -> None:
    ended: Future[str] = Future()
    owner = make_owner(network, call_limit_s=0.5, farewell_s=0.1, end=ended.set_result)
    assert owner.fault is None
    held = hold(network, owner, in_background)
    waiting = in_background(owner.encode, [sequence(2)])
    for call in (held, waiting):
        with pytest.raises(ModelUnavailable, match=r"has not returned for 0\.5 s"):
            call.result(PATIENCE_S)
    assert ended.result(PATIENCE_S) == owner.fault
    with pytest.raises(ModelUnavailable, match="has not returned"):
        owner.encode([sequence(3)])
    network.open.set()  # too late
    owner.close()


def test_many_calls_together_may_take_longer_than_one_of_them(network: SummingNetwork) -> None:
    ended: Future[str] = Future()
    owner = make_owner(network, call_limit_s=0.5, end=ended.set_result)
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        assert owner.encode([sequence(1)]) == [(1, 1)]
    assert not ended.done()
    owner.close()


def test_each_lane_has_computed_what_warms_it_up_when_the_owner_is_ready(network: SummingNetwork) -> None:
    owner = make_owner(
        network, n_lanes=2, warm_up=[sequence(*range(10)), sequence(*range(30)), sequence(POISON)]
    )
    assert sorted(network.shapes) == [(1, 16), (1, 16), (1, 16), (1, 16), (1, 32), (1, 32)]
    assert owner.encode([sequence(1)]) == [(1, 1)]
    owner.close()
