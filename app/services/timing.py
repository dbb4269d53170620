"""How long each stage of a search took."""

import time


class Timer:
    """Milliseconds per stage; a stage that runs twice counts twice."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps[stage] = self._laps.get(stage, 0.0) + 1000 * (now - self._last)
        self._last = now

    def timings_ms(self) -> dict[str, float]:
        total = 1000 * (time.perf_counter() - self._began)
        return {stage: round(ms, 3) for stage, ms in [*self._laps.items(), ("total", total)]}
