"""The models that read single texts: the tagger, and fine-tuned classifiers by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from app.engine.activity import Activity
from app.engine.head_files import HeadFiles
from app.engine.models import load_tokenizer, make_runner
from app.engine.roles import Role, models_of
from app.engine.sequence_model import SequenceModel
from app.engine.tagger import Tagger
from app.errors import ModelUnavailable
from app.settings import Settings

M = TypeVar("M", Tagger, SequenceModel)


@dataclass(frozen=True, slots=True)
class TextModels:
    tagger: Tagger | None = None
    """None where no model has the role."""
    sequence: Mapping[str, SequenceModel] = field(default_factory=dict)
    """By the last part of each one's name or path."""

    @property
    def by_role(self) -> Iterator[tuple[Role, Tagger | SequenceModel]]:
        """Of a role that several have, each."""
        if self.tagger is not None:
            yield "tagger", self.tagger
        for model in self.sequence.values():
            yield "sequence", model

    @property
    def fault(self) -> str | None:
        """Why one of them answers no more; None while all do."""
        return next((model.fault for model in self._all() if model.fault), None)

    @property
    def activities(self) -> dict[str, Activity]:
        """By role; a classifier's has its name in it."""
        found = {f"sequence {name}": model.activity for name, model in self.sequence.items()}
        return found if self.tagger is None else {"tagger": self.tagger.activity, **found}

    def load(self) -> None:
        """What is otherwise loaded at its first use. Raises ModelUnavailable."""
        for model in self._all():
            model.load()

    def close(self) -> None:
        for model in self._all():
            model.close()

    def _all(self) -> Iterator[Tagger | SequenceModel]:
        if self.tagger is not None:
            yield self.tagger
        yield from self.sequence.values()


def load_text_models(settings: Settings, *, farewell_s: float = 0.0) -> TextModels:
    """All that are set, or ship, each in the runtime that `settings.runtime` asks for.

    Their files are checked now; the networks are loaded when they are first used.

    Raises:
        ModelUnavailable: one is missing, damaged or cannot take its role.
    """
    taggers = [_load(Tagger, files, settings, farewell_s) for files in models_of("tagger", settings)[:1]]
    sequence: dict[str, SequenceModel] = {}
    for files in models_of("sequence", settings):
        name = short_name(files)
        if name in sequence:
            raise ModelUnavailable(
                f"two classifiers are called {name}: BIFOCAL_SEQUENCE_MODELS must not repeat one"
            )
        sequence[name] = _load(SequenceModel, files, settings, farewell_s)
    return TextModels(taggers[0] if taggers else None, sequence)


def short_name(files: HeadFiles) -> str:
    """What requests call it."""
    return files.name.rstrip("/").rpartition("/")[2]


def _load(kind: type[M], files: HeadFiles, settings: Settings, farewell_s: float) -> M:
    runner = make_runner(files, settings, farewell_s=farewell_s)
    try:
        return kind(files, runner, load_tokenizer(files))
    except ModelUnavailable:
        runner.close()
        raise
