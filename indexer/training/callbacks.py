"""What happens beside the steps of a training: log, checkpoints by the clock, a stop that can be resumed."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

LOG = "log.jsonl"

Show = Callable[[dict[str, Any]], None]
"""Gets step, n_steps, epoch, loss, tokens_per_s, left_s, and metrics when there are some."""


class Log(TrainerCallback):
    """Appends a line of JSON to log.jsonl for every logged loss and every evaluation, and shows it.

    Args:
        n_tokens: gives the tokens trained on so far in this process.
    """

    def __init__(self, path: Path, *, n_tokens: Callable[[], int], show: Show) -> None:
        self._path = path
        self._n_tokens = n_tokens
        self._show = show
        self._began = self._before = time.monotonic()
        self._tokens_before = 0
        self._first_step = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **named: Any
    ) -> None:
        self._began = self._before = time.monotonic()
        self._first_step = state.global_step
        _keep_until(self._path, state.global_step)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **named: Any,
    ) -> None:
        now = time.monotonic()
        line: dict[str, Any] = {
            "step": state.global_step,
            "n_steps": state.max_steps,
            "epoch": round(state.epoch or 0.0, 4),
            "seconds": round(now - self._began, 2),
        }
        logs: dict[str, Any] = named.get("logs") or {}
        if "loss" in logs:
            tokens = self._n_tokens()
            done = state.global_step - self._first_step
            line |= {
                "loss": logs["loss"],
                "learning_rate": logs.get("learning_rate"),
                "tokens_per_s": round((tokens - self._tokens_before) / max(now - self._before, 1e-6)),
                "left_s": round((now - self._began) / max(done, 1) * (state.max_steps - state.global_step)),
            }
            self._before, self._tokens_before = now, tokens
        line |= {name: value for name, value in logs.items() if name.startswith(("eval_", "train_"))}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._show(line)


class CheckpointByClock(TrainerCallback):
    """Saves when the last checkpoint is older than that, so that an interruption costs at most so much."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._saved = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **named: Any
    ) -> None:
        if time.monotonic() - self._saved >= self._every_s:
            control.should_save = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **named: Any
    ) -> None:
        self._saved = time.monotonic()


class Interruption(TrainerCallback):
    """After Ctrl-C or SIGTERM the step is finished, a checkpoint written, and the training stopped."""

    def __init__(self) -> None:
        self.is_asked = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Handle the signals meanwhile; the second Ctrl-C ends at once."""

        def ask(_number: int, _frame: Any) -> None:
            if self.is_asked:
                raise KeyboardInterrupt
            self.is_asked = True

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **named: Any
    ) -> None:
        if self.is_asked:
            control.should_save = control.should_training_stop = True


def _keep_until(path: Path, step: int) -> None:
    """Drop what was logged after the checkpoint that a training goes on from."""
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if line.strip() and json.loads(line)["step"] <= step and step]
        path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
