"""What a model with a head says of itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.engine.head_files import HeadFiles
from app.engine.runner import Runner


@dataclass(frozen=True, slots=True)
class HeadDescription:
    name: str
    architecture: str
    fingerprint: str
    """Digest over weights, architecture, limit and calibration. Not the runtime."""
    max_tokens: int
    """Of one input, special tokens included."""
    max_question_tokens: int | None
    """Of the question in a pair; None for a model that reads single texts."""
    runtime: str
    """"openvino-int8", "torch-float32", ... with its version."""
    labels: Sequence[str]

    @classmethod
    def of(
        cls, files: HeadFiles, runner: Runner, *, max_question_tokens: int | None = None
    ) -> "HeadDescription":
        return cls(
            name=files.name,
            architecture=files.architecture,
            fingerprint=files.fingerprint,
            max_tokens=files.max_tokens,
            max_question_tokens=max_question_tokens,
            runtime=runner.runtime,
            labels=tuple(files.labels),
        )
