"""One owner runs a model; calls that wait at the same time share its batches.

Two ways to call it. `encode`: a call of up to `max_queue` texts is interactive: all its texts wait at once,
and together with those of other interactive calls they may number at most `max_queue`. A larger call is bulk:
its batches line up one at a time behind whoever waits, so it neither fills the queue nor keeps others waiting
longer than a batch or two. `in_turns`: every call lines up like that, as many as `max_queue` at a time; for
models whose calls are many texts each.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.engine.activity import Activity
from app.engine.shapes import cut_batches, cut_batches_in_order, even_budget, padded_length
from app.engine.watchdog import Watchdog, end_process
from app.errors import ModelUnavailable, Overloaded

S = TypeVar("S", bound=Sized)
"""A sequence of tokens; its length is their number."""
R = TypeVar("R")
"""What the model says of one sequence."""

Compute = Callable[[Sequence[S]], Sequence[R]]
"""One batch: sequences to results, in their order."""

CALL_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class _Call(Generic[S, R]):
    """A call, or one batch's worth of it."""

    sequences: Sequence[S]
    is_interactive: bool
    is_alone: bool = False
    """Whether to compute it apart from others, because a deadline waits for it."""
    results: Future[Sequence[R]] = field(default_factory=Future)


class BatchingOwner(Generic[S, R]):
    """Runs a model in threads of its own. Safe to call from any thread.

    Args:
        compute: one batch; only ever called from the owner's threads.
        n_lanes: threads, and so batches computed at the same time.
        max_batch_tokens: of one call of `compute`, padding counted; a single sequence may be longer.
        max_queue: texts of interactive calls that may wait, and calls that may take turns.
        warm_up: sequences that each lane computes, one by one, before the owner is ready: a runtime prepares
            code and memory at the first sight of a shape, for each thread anew.
        call_limit_s: that one call of `compute` may take.
        farewell_s: that callers get to pass the news on, before the process ends for a call that took longer.
            0: they get none.
        end: ends the process, told why.
    """

    def __init__(
        self,
        compute: Compute[S, R],
        *,
        n_lanes: int,
        max_batch_tokens: int,
        max_queue: int,
        warm_up: Sequence[S] = (),
        call_limit_s: float = CALL_LIMIT_S,
        farewell_s: float = 0.0,
        end: Callable[[str], None] = end_process,
    ) -> None:
        self._compute = compute
        self._max_batch_tokens = max_batch_tokens
        self._max_queue = max_queue
        self._call_limit_s = call_limit_s
        self._farewell_s = farewell_s
        self._end_process = end
        self._waiting: deque[_Call[S, R]] = deque()
        self._running: dict[int, Sequence[_Call[S, R]]] = {}
        """By lane."""
        self._n_waiting = 0
        self._n_bulk = 0
        self._n_taking_turns = 0
        self._n_batches = 0
        self._n_sequences = 0
        self._n_tokens = 0
        self._n_idle = 0
        """Lanes that wait for work."""
        self._closed = False
        self._fault: str | None = None
        self._changed = threading.Condition()
        self._watchdog = Watchdog(limit_s=call_limit_s, on_stuck=self._on_stuck)
        ready = threading.Barrier(n_lanes + 1)
        self._lanes = [
            threading.Thread(target=self._run, args=[warm_up, ready], name=f"model-{i}", daemon=True)
            for i in range(n_lanes)
        ]
        for lane in self._lanes:
            lane.start()
        ready.wait()

    @property
    def fault(self) -> str | None:
        """Why it answers no more; None while it does."""
        return self._fault

    @property
    def activity(self) -> Activity:
        with self._changed:
            return Activity(self._n_batches, self._n_sequences, self._n_tokens, self._n_waiting)

    def encode(self, sequences: Sequence[S]) -> list[R]:
        """Results of the sequences, in their order. Blocks until they are there.

        Raises:
            Overloaded: too many others wait already; nothing was done.
            ModelUnavailable: closed, or a call of the model does not return.
        """
        lengths = [len(s) for s in sequences]
        batches = list(cut_batches(lengths, max_batch_tokens=self._max_batch_tokens))
        if len(sequences) <= self._max_queue:
            parts = [[sequences[i] for i in rows] for rows in batches]
            return _gathered(len(sequences), zip(batches, self._enqueue(parts), strict=True))
        with self._changed:
            if self._n_bulk:
                raise Overloaded("another large batch is being encoded; wait for it or send fewer texts")
            self._n_bulk += 1
        try:
            return _gathered(len(sequences), self._one_after_another(sequences, batches))
        finally:
            with self._changed:
                self._n_bulk -= 1

    def in_turns(self, sequences: Sequence[S]) -> list[R]:
        """As `encode`, a batch at a time, however many sequences there are.

        Raises:
            Overloaded: `max_queue` other calls take turns already.
            ModelUnavailable: closed.
        """
        lengths = [len(s) for s in sequences]
        with self._turn():
            budget = even_budget(
                lengths, n_lanes=len(self._lanes), max_batch_tokens=self._max_batch_tokens // 2
            )
            batches = list(cut_batches(lengths, max_batch_tokens=budget))
            return _gathered(len(sequences), self._one_after_another(sequences, batches))

    def until(self, sequences: Sequence[S], *, deadline: float) -> list[R | None]:
        """As `in_turns`, first sequences first, until `deadline` of `time.monotonic`.

        None for those that were not computed by then. What a lane computes at the deadline is waited for no
        longer, and what has not begun is not computed.
        """
        lengths = [len(s) for s in sequences]
        results: list[R | None] = [None] * len(sequences)
        if time.monotonic() >= deadline:
            return results
        with self._turn():
            batches = cut_batches_in_order(lengths, max_batch_tokens=self._max_batch_tokens // 4)
            running: deque[tuple[list[int], Future[Sequence[R]]]] = deque()
            for rows, part in self._one_after_another(sequences, batches, running, are_alone=True):
                try:
                    found = part.result(max(0.0, deadline - time.monotonic()))
                except TimeoutError:
                    running.appendleft((rows, part))
                    break
                _put(results, rows, found)
            for rows, part in running:
                if not part.cancel() and part.done():
                    _put(results, rows, part.result())
        return results

    def close(self) -> None:
        """Finish what waits, refuse what comes, end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._fault is None:
            for lane in self._lanes:
                lane.join()
        self._watchdog.close()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._changed:
            if self._n_taking_turns >= self._max_queue:
                raise Overloaded(f"{self._n_taking_turns} requests use the model already, no more may")
            self._n_taking_turns += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_taking_turns -= 1

    def _one_after_another(
        self,
        sequences: Sequence[S],
        batches: Iterable[list[int]],
        running: deque[tuple[list[int], Future[Sequence[R]]]] | None = None,
        *,
        are_alone: bool = False,
    ) -> Iterator[tuple[list[int], Future[Sequence[R]]]]:
        """All lanes compute a batch while one more waits, so that none idles in between."""
        running = deque() if running is None else running
        for rows in batches:
            running.append((rows, self._enqueue_bulk([sequences[i] for i in rows], is_alone=are_alone)))
            if len(running) > len(self._lanes):
                yield running.popleft()
        while running:
            yield running.popleft()

    def _enqueue(self, parts: Sequence[Sequence[S]]) -> list[Future[Sequence[R]]]:
        calls: list[_Call[S, R]] = [_Call(part, is_interactive=True) for part in parts]
        n = sum(len(part) for part in parts)
        with self._changed:
            self._refuse_if_ended()
            if self._n_waiting + n > self._max_queue:
                raise Overloaded(
                    f"{self._n_waiting} texts wait for the model already, at most {self._max_queue} may"
                )
            self._n_waiting += n
            self._waiting += calls
            self._changed.notify(len(calls))
        return [call.results for call in calls]

    def _enqueue_bulk(self, sequences: Sequence[S], *, is_alone: bool) -> Future[Sequence[R]]:
        call: _Call[S, R] = _Call(sequences, is_interactive=False, is_alone=is_alone)
        with self._changed:
            self._refuse_if_ended()
            self._waiting.append(call)
            self._changed.notify()
        return call.results

    def _refuse_if_ended(self) -> None:
        if self._fault is not None:
            raise ModelUnavailable(self._fault)
        if self._closed:
            raise ModelUnavailable("the model is shut down")

    def _on_stuck(self) -> None:
        fault = f"a call of the model has not returned for {self._call_limit_s:g} s"
        if self._farewell_s:
            self._give_up(fault)
            time.sleep(self._farewell_s)
        self._end_process(fault)

    def _give_up(self, fault: str) -> None:
        """Fail what runs or waits, and refuse what comes, with ModelUnavailable."""
        with self._changed:
            self._fault = fault
            calls = [*self._waiting, *(call for calls in self._running.values() for call in calls)]
            self._waiting.clear()
            self._n_waiting = 0
            self._changed.notify_all()
        for call in calls:
            with suppress(InvalidStateError):  # it was answered or cancelled just now
                call.results.set_exception(ModelUnavailable(fault))

    def _run(self, warm_up: Sequence[S], ready: threading.Barrier) -> None:
        for sequence in warm_up:
            self._answer_alone(_Call([sequence], is_interactive=False))
        ready.wait()
        while calls := self._next_calls():
            calls = [call for call in calls if call.results.set_running_or_notify_cancel()]
            try:
                self._answer(calls)
            except Exception:  # noqa: BLE001  whatever it is belongs to one of the calls: find out whose
                for call in calls:
                    self._answer_alone(call)
            del self._running[threading.get_ident()]

    def _next_calls(self) -> list[_Call[S, R]]:
        """Take the calls that wait, as many as fit into one batch; block for the first. Empty: ended.

        A lane that could share with an idle one takes a single call.
        """
        with self._changed:
            self._n_idle += 1
            self._changed.wait_for(lambda: self._waiting or self._closed or self._fault is not None)
            self._n_idle -= 1
            calls: list[_Call[S, R]] = []
            n_tokens = 0
            while self._waiting:
                n_tokens += sum(padded_length(len(s)) for s in self._waiting[0].sequences)
                is_alone = bool(calls) and (calls[0].is_alone or self._waiting[0].is_alone)
                if calls and (is_alone or self._n_idle or n_tokens > self._max_batch_tokens):
                    break
                call = self._waiting.popleft()
                self._n_waiting -= len(call.sequences) if call.is_interactive else 0
                calls.append(call)
            if calls:
                self._running[threading.get_ident()] = calls
            return calls

    def _answer(self, calls: Sequence[_Call[S, R]]) -> None:
        """Nothing is handed out before everything is computed."""
        sequences = [s for call in calls for s in call.sequences]
        computed: list[tuple[list[int], Sequence[R]]] = [
            (rows, self._watched([sequences[i] for i in rows]))
            for rows in cut_batches([len(s) for s in sequences], max_batch_tokens=self._max_batch_tokens)
        ]
        results: list[R | None] = [None] * len(sequences)
        for rows, found in computed:
            _put(results, rows, found)
        start = 0
        for call in calls:
            with suppress(InvalidStateError):  # given up meanwhile
                call.results.set_result(results[start : start + len(call.sequences)])  # type: ignore[arg-type]
            start += len(call.sequences)

    def _watched(self, sequences: Sequence[S]) -> Sequence[R]:
        with self._watchdog.watching():
            results = self._compute(sequences)
        with self._changed:
            self._n_batches += 1
            self._n_sequences += len(sequences)
            self._n_tokens += sum(len(s) for s in sequences)
        return results

    def _answer_alone(self, call: _Call[S, R]) -> None:
        try:
            self._answer([call])
        except Exception as error:  # noqa: BLE001  handed to the caller
            with suppress(InvalidStateError):
                call.results.set_exception(error)


def _gathered(n: int, parts: Iterable[tuple[list[int], Future[Sequence[R]]]]) -> list[R]:
    results: list[R | None] = [None] * n
    for rows, part in parts:
        _put(results, rows, part.result())
    return results  # type: ignore[return-value]  # every place was filled


def _put(results: list[R | None], rows: Sequence[int], found: Sequence[R]) -> None:
    for row, result in zip(rows, found, strict=True):
        results[row] = result
