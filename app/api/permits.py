"""Permits: a search that would have to wait long is refused at once, before it takes a thread."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from fastapi import Request

from app.errors import Overloaded


class Permits:
    """At most `n_max` holders at a time. Used by the event loop alone, so it needs no lock."""

    def __init__(self, n_max: int) -> None:
        self._n_max = n_max
        self._n_held = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises Overloaded."""
        if self._n_held >= self._n_max:
            raise Overloaded(
                f"{self._n_max} searches are under way, and no more may be (max_queue); try again"
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
