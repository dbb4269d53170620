"""The role of fine-tuned classifiers of texts: texts in, a logit for every label out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.activity import Activity
from app.engine.description import HeadDescription
from app.engine.head_files import HeadFiles
from app.engine.inputs import encoder_inputs
from app.engine.runner import Runner, TokenSequence
from app.engine.tokenizer import Tokenizer
from app.errors import ModelUnavailable

ARCHITECTURE = "ForSequenceClassification"
MULTI_LABEL = "multi_label_classification"


@dataclass(frozen=True, slots=True)
class Logits:
    logits: NDArray[np.float64]  # (n, k)
    n_tokens: NDArray[np.int32]  # (n,), before any truncation, special tokens included
    truncated: NDArray[np.bool_]  # (n,)


class SequenceModel:
    """Safe to call from any thread.

    Raises:
        ModelUnavailable: the model does not classify texts.
    """

    def __init__(self, files: HeadFiles, runner: Runner, tokenizer: Tokenizer) -> None:
        if not files.architecture.endswith(ARCHITECTURE):
            raise ModelUnavailable(f"{files.name} is a {files.architecture}, not a model {ARCHITECTURE}")
        self._files = files
        self._runner = runner
        self._tokenizer = tokenizer
        self._temperature = float(files.calibration.get("temperature", 1.0))
        self.labels = tuple(files.labels)
        self.multi_label = files.config.get("problem_type") == MULTI_LABEL or len(self.labels) == 1
        """Whether each label is a question of its own: then its score is a sigmoid, not a softmax."""

    @property
    def description(self) -> HeadDescription:
        return HeadDescription.of(self._files, self._runner)

    @property
    def fault(self) -> str | None:
        """Why it answers no more; None while it does."""
        return self._runner.fault

    @property
    def is_loaded(self) -> bool:
        return self._runner.is_loaded

    def load(self) -> float:
        """As `Runner.load`."""
        return self._runner.load()

    @property
    def activity(self) -> Activity:
        return self._runner.activity

    def classify(self, texts: Sequence[str], *, truncate: bool) -> Logits:
        """
        Raises:
            BlankText: a text has no visible character.
            TextTooLong: a text exceeds the limit, and `truncate` is False.
            Overloaded: too many other requests use the model.
        """
        inputs = encoder_inputs(
            texts,
            None,
            tokenizer=self._tokenizer,
            prompt="",
            max_tokens=self._files.max_tokens,
            truncate=truncate,
        )
        outputs = self._runner.run([TokenSequence(ids) for ids in inputs.sequences])
        logits = np.array([each["logits"] for each in outputs], dtype=np.float64)
        return Logits(
            logits.reshape(len(texts), len(self.labels)) / self._temperature,
            inputs.n_tokens,
            inputs.truncated,
        )

    def close(self) -> None:
        self._runner.close()
