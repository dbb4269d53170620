"""How often a caller may ask: one token bucket each, in memory.

A bucket holds up to `burst` tokens and gains `per_s` each second; a request takes one. Each process of the
service has its own.
"""

import math
import time
from collections.abc import Callable

from app.errors import RateLimited

MAX_CALLERS = 10_000
"""Those who asked last are remembered. Who is forgotten begins with a full bucket."""


class RateLimit:
    """Used by the event loop alone.

    Args:
        per_s: requests a second on average; 0 means any number.
        burst: requests at once.
    """

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """By caller, longest silent first: tokens, and when there were so many."""

    def take(self, caller: str) -> None:
        """Raises RateLimited."""
        if not self._per_s:
            return
        now = self._clock()
        tokens, then = self._buckets.pop(caller, (float(self._burst), now))
        tokens = min(self._burst, tokens + (now - then) * self._per_s)
        is_allowed = tokens >= 1
        self._buckets[caller] = (tokens - is_allowed, now)
        if len(self._buckets) > MAX_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        if not is_allowed:
            raise RateLimited(
                f"{caller} may ask {self._per_s:g} times a second on average, {self._burst} times at once "
                "(rate_limit, rate_burst)",
                retry_after_s=math.ceil((1 - tokens) / self._per_s),
            )
