"""Runs a network over question and passages, window by window."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.activity import Activity
from app.engine.description import HeadDescription
from app.engine.head_files import HeadFiles
from app.engine.pairs import PairEncoder, PairInputs, Question, TitledText
from app.engine.runner import Outputs, Runner
from app.errors import BadVector


@dataclass(frozen=True, slots=True)
class PairOutputs:
    pair: PairInputs
    windows: Sequence[Outputs]


class PairRunner:
    """Safe to call from any thread."""

    def __init__(self, runner: Runner, encoder: PairEncoder) -> None:
        self._runner = runner
        self._encoder = encoder

    def described(self, files: HeadFiles) -> HeadDescription:
        return HeadDescription.of(files, self._runner, max_question_tokens=self.max_question_tokens)

    @property
    def is_loaded(self) -> bool:
        return self._runner.is_loaded

    def load(self) -> float:
        """As `Runner.load`."""
        return self._runner.load()

    @property
    def max_question_tokens(self) -> int:
        return self._encoder.max_question_tokens

    @property
    def fault(self) -> str | None:
        return self._runner.fault

    def run(
        self,
        question: Question,
        passages: Sequence[TitledText],
        *,
        max_windows: int | None,
        deadline: float | None,
        max_text_tokens: int | None = None,
    ) -> list[PairOutputs | None]:
        """Outputs of all windows of each passage, the first passages first; None for what was late.

        Windows and their size as in `PairEncoder.inputs`.

        Raises:
            Overloaded: too many others use the model.
            BadVector: the model gave numbers that are not finite.
        """
        pairs = [
            self._encoder.inputs(question, passage, max_windows=max_windows, max_text_tokens=max_text_tokens)
            for passage in passages
        ]
        sequences = [one.sequence for pair in pairs for one in pair.inputs]
        if deadline is None:
            outputs: Sequence[Outputs | None] = self._runner.run(sequences)
        else:
            outputs = self._runner.run_until(sequences, deadline=deadline)
        return list(_of_pairs(pairs, outputs))

    def question(self, text: str) -> Question:
        """Raises BlankText."""
        return self._encoder.question(text)

    @property
    def activity(self) -> Activity:
        return self._runner.activity

    def close(self) -> None:
        self._runner.close()


def _of_pairs(pairs: Sequence[PairInputs], outputs: Sequence[Outputs | None]) -> Iterator[PairOutputs | None]:
    start = 0
    for at, pair in enumerate(pairs):
        own = [found for found in outputs[start : start + len(pair.inputs)] if found is not None]
        if not all(np.isfinite(array).all() for found in own for array in found.values()):
            raise BadVector(f"the model gave numbers for passage {at} that are not finite")
        yield PairOutputs(pair, own) if len(own) == len(pair.inputs) else None
        start += len(pair.inputs)
