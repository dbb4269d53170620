"""How long each stage of a search took."""

import time
from collections.abc import Mapping


class Timer:
    """Milliseconds per stage; a stage that runs twice counts twice.

    Args:
        before: stages that ran before it, with their `total`.
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        self._laps: dict[str, float] = dict(before or {})
        self._last = time.perf_counter()
        self._began = self._last - self._laps.pop("total", 0.0) / 1000

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps[stage] = self._laps.get(stage, 0.0) + 1000 * (now - self._last)
        self._last = now

    def timings_ms(self) -> dict[str, float]:
        total = 1000 * (time.perf_counter() - self._began)
        return {stage: round(ms, 3) for stage, ms in [*self._laps.items(), ("total", total)]}
