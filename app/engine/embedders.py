"""The bi-encoders that run: one, or two while collections are re-indexed from one to the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.engine.embedder import Embedder, EmbedderDescription
from app.errors import ModelNotConfigured
from app.settings import Settings

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Embedders:
    first: Embedder
    """Of new collections, and of everything that has no collection."""
    second: Embedder | None = None

    @property
    def all(self) -> Sequence[Embedder]:
        return [self.first] if self.second is None else [self.first, self.second]

    @property
    def by_role(self) -> Sequence[tuple[str, Embedder]]:
        return list(zip(("embedder", "second_embedder"), self.all, strict=False))

    def made(self, fingerprint: str) -> Embedder | None:
        """The one whose vectors have this fingerprint."""
        return next((each for each in self.all if each.description.fingerprint == fingerprint), None)

    @property
    def fault(self) -> str | None:
        """As that of an embedder."""
        return next((each.fault for each in self.all if each.fault), None)

    def close(self) -> None:
        for each in self.all:
            each.close()


def load_embedders(settings: Settings, load: Callable[[Settings], Embedder]) -> Embedders:
    """Raises ModelUnavailable: as `load`."""
    first = load(settings)
    if not settings.second_embedder:
        return Embedders(first)
    try:
        return Embedders(first, load(settings_of_second(settings)))
    except BaseException:
        first.close()
        raise


def settings_of_second(settings: Settings) -> Settings:
    """As if it were the first."""
    return settings.model_copy(update={"embedder": settings.second_embedder, "second_embedder": ""})


def named(name: str, running: Mapping[str, M]) -> M:
    """The model of this name. Raises ModelNotConfigured with the names there are."""
    if name not in running:
        raise ModelNotConfigured(
            f"the bi-encoder {name!r} does not run, only {' and '.join(map(repr, running))}; set "
            "BIFOCAL_SECOND_EMBEDDER to it and start service and worker anew"
        )
    return running[name]


def by_name(embedders: Embedders) -> Mapping[str, EmbedderDescription]:
    return {each.description.name: each.description for each in embedders.all}
