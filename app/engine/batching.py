"""One owner runs a model; calls that wait at the same time share its batches.

A call of up to `max_queue` texts is interactive: all its texts wait at once, and together with those of other
interactive calls they may number at most `max_queue`. A larger call is bulk: its batches line up one at a
time behind whoever waits, so it neither fills the queue nor keeps others waiting longer than a batch or two.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.engine.tokenizer import Ids
from app.errors import ModelUnavailable, Overloaded

Vectors = NDArray[np.float32]
Forward = Callable[[NDArray[np.int64], NDArray[np.int64]], Vectors]
"""(ids (n, t), mask (n, t) with 1 for a token and 0 for padding) -> vectors (n, d)."""

SHORT_STEP, LONG_STEP, SHORT_LENGTH = 16, 32, 128
"""Lengths are rounded up to few values, because runtimes keep prepared code and memory for every shape seen:
to multiples of 16 up to 128 and of 32 above, 12 lengths up to 256."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of `encode`, or one batch's worth of it."""

    sequences: Sequence[Ids]
    is_interactive: bool
    vectors: Future[Vectors] = field(default_factory=Future)


class BatchingOwner:
    """Runs a network in threads of its own. Safe to call from any thread.

    Args:
        forward: the network; only ever called from the owner's threads.
        n_lanes: threads, and so batches computed at the same time.
        pad_id: token id that fills up short sequences.
        max_tokens: of one sequence; padding never goes beyond.
        max_batch_tokens: of one call of the network, padding counted; a single sequence may be longer.
        max_queue: texts of interactive calls that may wait.
    """

    def __init__(
        self,
        forward: Forward,
        *,
        n_lanes: int,
        dimensions: int,
        pad_id: int,
        max_tokens: int,
        max_batch_tokens: int,
        max_queue: int,
    ) -> None:
        self._forward = forward
        self._dimensions = dimensions
        self._pad_id = pad_id
        self._max_tokens = max_tokens
        self._max_batch_tokens = max_batch_tokens
        self._max_queue = max_queue
        self._waiting: deque[_Call] = deque()
        self._n_waiting = 0
        self._n_bulk = 0
        self._closed = False
        self._changed = threading.Condition()
        self._lanes = [
            threading.Thread(target=self._run, name=f"model-{i}", daemon=True) for i in range(n_lanes)
        ]
        for lane in self._lanes:
            lane.start()

    def encode(self, sequences: Sequence[Ids]) -> Vectors:
        """Vectors (n, d) of the sequences, in their order. Blocks until they are there.

        Raises:
            Overloaded: too many others wait already; nothing was done.
            ModelUnavailable: closed.
        """
        lengths = [len(s) for s in sequences]
        batches = list(cut_batches(lengths, max_batch_tokens=self._max_batch_tokens))
        if len(sequences) <= self._max_queue:
            parts = [[sequences[i] for i in rows] for rows in batches]
            return self._gather(len(sequences), zip(batches, self._enqueue(parts), strict=True))
        with self._changed:
            if self._n_bulk:
                raise Overloaded("another large batch is being encoded; wait for it or send fewer texts")
            self._n_bulk += 1
        try:
            return self._gather(len(sequences), self._one_after_another(sequences, batches))
        finally:
            with self._changed:
                self._n_bulk -= 1

    def close(self) -> None:
        """Finish what waits, refuse what comes, end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for lane in self._lanes:
            lane.join()

    def _gather(self, n: int, parts: Iterable[tuple[list[int], Future[Vectors]]]) -> Vectors:
        vectors = np.empty((n, self._dimensions), dtype=np.float32)
        for rows, part in parts:
            vectors[rows] = part.result()
        return vectors

    def _one_after_another(
        self, sequences: Sequence[Ids], batches: Sequence[list[int]]
    ) -> Iterator[tuple[list[int], Future[Vectors]]]:
        """All lanes compute a batch while one more waits, so that none idles in between."""
        running: deque[tuple[list[int], Future[Vectors]]] = deque()
        for rows in batches:
            running.append((rows, self._enqueue_bulk([sequences[i] for i in rows])))
            if len(running) > len(self._lanes):
                yield running.popleft()
        yield from running

    def _enqueue(self, parts: Sequence[Sequence[Ids]]) -> list[Future[Vectors]]:
        calls = [_Call(part, is_interactive=True) for part in parts]
        n = sum(len(part) for part in parts)
        with self._changed:
            self._refuse_if_closed()
            if self._n_waiting + n > self._max_queue:
                raise Overloaded(
                    f"{self._n_waiting} texts wait for the model already, at most {self._max_queue} may"
                )
            self._n_waiting += n
            self._waiting += calls
            self._changed.notify(len(calls))
        return [call.vectors for call in calls]

    def _enqueue_bulk(self, sequences: Sequence[Ids]) -> Future[Vectors]:
        call = _Call(sequences, is_interactive=False)
        with self._changed:
            self._refuse_if_closed()
            self._waiting.append(call)
            self._changed.notify()
        return call.vectors

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ModelUnavailable("the model is shut down")

    def _run(self) -> None:
        while calls := self._next_calls():
            try:
                self._answer(calls)
            except Exception:  # noqa: BLE001  whatever it is belongs to one of the calls: find out whose
                for call in calls:
                    self._answer_alone(call)

    def _next_calls(self) -> list[_Call]:
        """Take the calls that wait, as many as fit into one batch; block for the first. Empty: closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            calls: list[_Call] = []
            n_tokens = 0
            while self._waiting:
                n_tokens += sum(padded_length(len(s)) for s in self._waiting[0].sequences)
                if calls and n_tokens > self._max_batch_tokens:
                    break
                call = self._waiting.popleft()
                self._n_waiting -= len(call.sequences) if call.is_interactive else 0
                calls.append(call)
            return calls

    def _answer(self, calls: Sequence[_Call]) -> None:
        vectors = self._compute([s for call in calls for s in call.sequences])
        start = 0
        for call in calls:
            call.vectors.set_result(vectors[start : start + len(call.sequences)])
            start += len(call.sequences)

    def _answer_alone(self, call: _Call) -> None:
        try:
            self._answer([call])
        except Exception as error:  # noqa: BLE001  handed to the caller
            call.vectors.set_exception(error)

    def _compute(self, sequences: Sequence[Ids]) -> Vectors:
        vectors = np.empty((len(sequences), self._dimensions), dtype=np.float32)
        for rows in cut_batches([len(s) for s in sequences], max_batch_tokens=self._max_batch_tokens):
            vectors[rows] = self._forward(*self._pad([sequences[i] for i in rows]))
        return vectors

    def _pad(self, sequences: Sequence[Ids]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids and mask (n, t) of sequences, t the padded length of the longest."""
        length = min(padded_length(max(len(s) for s in sequences)), self._max_tokens)
        ids = np.full((len(sequences), length), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        return ids, mask


def padded_length(n_tokens: int) -> int:
    """
    >>> [padded_length(n) for n in (1, 16, 17, 128, 129, 256)]
    [16, 16, 32, 128, 160, 256]
    """
    step = SHORT_STEP if n_tokens <= SHORT_LENGTH else LONG_STEP
    return -(-n_tokens // step) * step


def cut_batches(lengths: Sequence[int], *, max_batch_tokens: int) -> Iterator[list[int]]:
    """Group sequences of similar length into batches of at most max_batch_tokens, padding counted.

    Yields the positions of each batch's sequences, longest first. A sequence of less than half the batch's
    length begins a new batch: padding it would cost more than another call of the network.
    """
    rows: list[int] = []
    length = 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        own = padded_length(lengths[i])
        if rows and ((len(rows) + 1) * length > max_batch_tokens or 2 * own < length):
            yield rows
            rows = []
        length = own if not rows else length
        rows.append(i)
    if rows:
        yield rows
