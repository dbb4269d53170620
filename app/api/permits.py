"""Permits: a search that would have to wait long is refused at once, before it takes a thread."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from fastapi import Request

from app.errors import Overloaded


class Permits:
    """At most `n_max` holders at a time. Used by the event loop alone, so it needs no lock."""

    def __init__(self, n_max: int, *, of: str = "searches", limit: str = "max_queue") -> None:
        """`of` what, and the name of the `limit`, are for the message."""
        self._n_max = n_max
        self._of = of
        self._limit = limit
        self._n_held = 0

    @property
    def n_held(self) -> int:
        return self._n_held

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises Overloaded."""
        if self._n_held >= self._n_max:
            raise Overloaded(
                f"{self._n_max} {self._of} are under way, and no more may be ({self._limit}); try again"
            )
        self._n_held += 1
        try:
            yield
        finally:
            self._n_held -= 1


async def search_permit(request: Request) -> AsyncIterator[None]:
    """Held until the response is sent."""
    permits: Permits = request.state.parts.search_permits
    with permits.held():
        yield


async def examination_permit(request: Request) -> AsyncIterator[None]:
    """Held until the response is sent. An examination reads much of the store."""
    permits: Permits = request.state.parts.examination_permits
    with permits.held():
        yield


async def training_permit(request: Request) -> AsyncIterator[None]:
    """Held until the response is sent. A training takes all cores for as long as it lasts."""
    permits: Permits = request.state.parts.training_permits
    with permits.held():
        yield
