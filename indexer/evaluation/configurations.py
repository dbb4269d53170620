"""What is compared: ways of searching, by the names that users give on the command line."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from app.domain import Fusion, Mode
from app.errors import InvalidInput

MODES: tuple[Mode, ...] = get_args(Mode)
RERANK = "rerank"
"""Hybrid search whose best hits a cross-encoder ranks anew."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A named way of searching."""

    name: str
    mode: Mode
    fusion: Fusion | None = None
    """None: the default of the search."""
    is_reranked: bool = False
    candidates: int | None = None
    """Documents that are reranked; None: the default of the search."""

    @property
    def fields(self) -> dict[str, Any]:
        """Of the request body, beside query and top_k."""
        fields: dict[str, Any] = {"mode": self.mode, "rerank": self.is_reranked}
        if self.fusion is not None:
            fields["fusion"] = asdict(self.fusion)
        if self.candidates is not None:
            fields["candidates"] = self.candidates
        return fields


def configurations(names: Sequence[str]) -> list[Configuration]:
    """
    Raises:
        InvalidInput: an unknown name, the same one twice, or none.
    """
    allowed = f"available are {', '.join([*MODES, RERANK])}"
    if not names:
        raise InvalidInput(f"no mode was named; {allowed}")
    found: list[Configuration] = []
    for name in names:
        if name in [each.name for each in found]:
            raise InvalidInput(f"the mode {name!r} is named twice")
        mode = next((mode for mode in MODES if mode == name), None)
        if mode is not None:
            found.append(Configuration(name, mode))
        elif name == RERANK:
            found.append(Configuration(name, "hybrid", is_reranked=True))
        else:
            raise InvalidInput(f"there is no mode {name!r}; {allowed}")
    return found
