"""What the lifespan builds and the endpoints use."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypedDict, TypeVar, cast

from starlette.requests import HTTPConnection

from app.api.keyring import Keyring
from app.api.metrics import Metrics
from app.api.permits import Permits
from app.api.rates import RateLimit
from app.api.traces import Traces
from app.engine.activity import Activity
from app.engine.embedder import Embedder
from app.engine.embedders import Embedders
from app.engine.inspected import InspectedModels
from app.engine.reading_models import ReadingModels
from app.engine.text_models import TextModels
from app.errors import BifocalError, ModelUnavailable, Overloaded
from app.services.classification import Classifiers
from app.services.search import Search
from app.settings import Settings
from app.storage.index import Index
from app.storage.rows import Rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    rows: Rows
    index: Index
    loading: Future[Embedders]
    """Done when the bi-encoders can be used, or with the reason why it never will."""
    search_permits: Permits
    training_permits: Permits
    examination_permits: Permits
    inspected: InspectedModels
    keyring: Keyring
    rates: RateLimit
    loading_reading: Future[ReadingModels]
    """As `loading`, of the reranker and the reader."""
    loading_texts: Future[TextModels]
    """As `loading`, of the tagger and the fine-tuned classifiers."""
    metrics: Metrics
    traces: Traces

    @property
    def embedders(self) -> Embedders:
        """Raises Overloaded while they are being loaded, ModelUnavailable if that failed."""
        return _loaded(self.loading, "the bi-encoder")

    @property
    def embedder(self) -> Embedder:
        """The first. Raises as `embedders`."""
        return self.embedders.first

    @property
    def reading(self) -> ReadingModels:
        """Raises as `embedder`."""
        return _loaded(self.loading_reading, "the reranker or reader")

    def activities(self) -> Mapping[str, Activity]:
        """By role, of the models that are loaded."""
        found: dict[str, Activity] = {}
        if self.loading.done() and self.loading.exception() is None:
            found |= {role: each.activity for role, each in self.loading.result().by_role}
        if self.loading_reading.done() and self.loading_reading.exception() is None:
            found |= self.loading_reading.result().activities
        if self.loading_texts.done() and self.loading_texts.exception() is None:
            found |= self.loading_texts.result().activities
        return found

    @property
    def texts(self) -> TextModels:
        """Raises as `embedder`."""
        return _loaded(self.loading_texts, "the models that read single texts")

    @property
    def search(self) -> Search:
        return Search(self.rows, self.index, self.embedders, self.reading)

    @property
    def classifiers(self) -> Classifiers:
        return Classifiers(self.rows, self.embedder)


def _loaded(loading: Future[T], what: str) -> T:
    if not loading.done():
        raise Overloaded(f"{what} is still being loaded; try again", retry_after_s=1)
    error = loading.exception()
    if error is None:
        return loading.result()
    if isinstance(error, BifocalError):
        raise ModelUnavailable(str(error)) from error
    raise ModelUnavailable(f"{what} could not be loaded; the log says why") from error


class State(TypedDict):
    """What `request.state` holds."""

    parts: Parts


def parts(connection: HTTPConnection) -> Parts:
    return cast(Parts, connection.state.parts)
