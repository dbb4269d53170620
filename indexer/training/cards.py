"""Model cards, made of facts: what it was trained on and how, what was measured, what it cannot do."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

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
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("indexer.training", "templates"),
        autoescape=False,  # noqa: S701  Markdown, and of the project's own recipes
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("card.md.j2").render(
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
