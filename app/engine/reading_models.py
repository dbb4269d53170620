"""The models that read question and passage together: reranker and reader, which may be one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.engine.activity import Activity
from app.engine.cross_encoder import CrossEncoder
from app.engine.head_files import HeadFiles
from app.engine.models import load_tokenizer, make_runner
from app.engine.pair_runner import PairRunner
from app.engine.pairs import PairEncoder
from app.engine.reader import Reader
from app.engine.reranker import Reranker
from app.engine.roles import Role, models_of
from app.engine.span_reader import JointReader, SpanReader
from app.errors import ModelUnavailable
from app.settings import Settings

ARCHITECTURES: Mapping[Role, tuple[str, ...]] = {
    "reranker": ("JointModel", "ForSequenceClassification"),
    "reader": ("JointModel", "ForQuestionAnswering"),
}
"""Ends of their names."""


@dataclass(frozen=True, slots=True)
class ReadingModels:
    """Each None where no model has the role."""

    reranker: Reranker | None = None
    reader: Reader | None = None

    @property
    def is_joint(self) -> bool:
        """Whether one model both ranks and reads."""
        return self.reranker is not None and self.reranker is self.reader  # type: ignore[comparison-overlap]

    @property
    def rank_as_they_read(self) -> bool:
        """Whether the pass that ranks a passage reads all of it, and so finds its answer, too."""
        return self.is_joint and self.reranker is not None and self.reranker.max_text_tokens is None

    @property
    def rerank_by_default(self) -> bool:
        return self.reranker is not None and self.reranker.is_default

    @property
    def by_role(self) -> Iterator[tuple[Role, Reranker | Reader]]:
        """Both, though they may be one."""
        if self.reranker is not None:
            yield "reranker", self.reranker
        if self.reader is not None:
            yield "reader", self.reader

    @property
    def fault(self) -> str | None:
        return next((model.fault for model in self._all() if model.fault), None)

    @property
    def activities(self) -> dict[str, Activity]:
        """By role; a joint model has both, and counts once."""
        roles = {"reranker": self.reranker, "reader": self.reader}
        if self.is_joint:
            roles = {"joint": self.reranker}
        return {role: model.activity for role, model in roles.items() if model is not None}

    def load(self) -> None:
        """What is otherwise loaded at its first use. Raises ModelUnavailable."""
        for model in self._all():
            model.load()

    def close(self) -> None:
        for model in self._all():
            model.close()

    def _all(self) -> Iterator[Reranker | Reader]:
        """A joint model once."""
        for model in (self.reranker, None if self.is_joint else self.reader):
            if model is not None:
                yield model


def load_reading_models(settings: Settings, *, farewell_s: float = 0.0) -> ReadingModels:
    """Both, a joint model once, each in the runtime that `settings.runtime` asks for.

    Their files are checked now; the networks are loaded when they are first used.

    Raises:
        ModelUnavailable: one that is set, or that ships, is missing, damaged or cannot take its role.
    """
    of_reranker, of_reader = (_files(role, settings) for role in ("reranker", "reader"))
    load = partial(_load, settings=settings, farewell_s=farewell_s)
    if of_reranker is not None and of_reader is not None and of_reranker.folder == of_reader.folder:
        joint = load(of_reranker)
        return ReadingModels(joint, joint)
    return ReadingModels(
        None if of_reranker is None else load(of_reranker), None if of_reader is None else load(of_reader)
    )


def _files(role: Role, settings: Settings) -> HeadFiles | None:
    found = models_of(role, settings)
    if not found:
        return None
    if not found[0].architecture.endswith(ARCHITECTURES[role]):
        raise ModelUnavailable(
            f"{found[0].name} ({found[0].architecture}) cannot be the {role}; models of these architectures"
            f" can: {', '.join(ARCHITECTURES[role])}"
        )
    return found[0]


def _load(files: HeadFiles, *, settings: Settings, farewell_s: float) -> Any:
    """What it can be: a joint model is a reranker and a reader, the others are one of both."""
    runner = make_runner(files, settings, farewell_s=farewell_s)
    pairs = PairRunner(runner, PairEncoder(load_tokenizer(files), max_tokens=files.max_tokens))
    try:
        if files.architecture == "JointModel":
            return JointReader(files, pairs)
        if files.architecture.endswith("ForSequenceClassification"):
            return CrossEncoder(files, pairs)
        return SpanReader(files, pairs)
    except ModelUnavailable:
        pairs.close()
        raise
