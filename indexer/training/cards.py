"""Model cards, made of facts: what it was trained on and how, what was measured, what it cannot do."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from indexer.templates import rendered
from indexer.training.results import TrainingResult, machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a recipe says of its model beside the settings."""

    summary: str = ""
    sources: Sequence[dict[str, str]] = ()
    """name, licence and role of each data set."""
    licence: str = ""
    """Of the weights."""
    limits: Sequence[str] = ()


def card(
    result: TrainingResult,
    *,
    name: str,
    command: Sequence[str],
    settings: dict[str, Any],
    facts: CardFacts,
    max_tokens: int,
    labels: Sequence[str],
    measured: Sequence[dict[str, Any]] = (),
) -> str:
    """
    Args:
        command: that makes the model again.
        measured: further figures, each with name and value.
    """
    return rendered(
        "indexer.training",
        "card.md.j2",
        is_markup=False,
        result=result,
        name=name,
        command=shlex.join(command),
        settings=settings,
        facts=facts,
        max_tokens=max_tokens,
        labels=labels,
        machine=machine(),
        measured=measured,
    )
