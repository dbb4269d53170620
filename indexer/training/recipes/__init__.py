"""Recipes: small files that say how a model that ships was trained, and train it again.

A recipe names its model, the settings of its training in the words of `TrainingRequest` (or of the
pretraining or the joint model), and what its card says. Paths of data are looked up from the working folder,
then in $BIFOCAL_DATA.
"""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.errors import BadFile, InvalidInput

FOLDER = Path(__file__).parent
FIELDS = ("name", "task", "mine", "settings", "labels", "card")
MINING_FIELDS = ("output", "data", "split", "squad", "titles", "negatives", "limit")
CARD_FIELDS = ("summary", "sources", "licence", "limits")


@dataclass(frozen=True, slots=True)
class Recipe:
    name: str
    task: str
    settings: dict[str, Any]
    card: dict[str, Any]
    mine: Sequence[dict[str, Any]] = ()
    """Hard negatives to find first, each in the words of `bifocal mine`; the files join the paths."""
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    """What the model calls the labels of its data set."""


def known_recipes() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """By name, or by the path of another file.

    Raises:
        InvalidInput: there is none.
        BadFile: it is malformed; the message says where and what is allowed.
    """
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        path = Path(name)
    if not path.is_file():
        raise InvalidInput(f"no recipe {name!r}; there are {', '.join(known_recipes())}, or give a file")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadFile(f"{path} is no YAML: {error}") from error
    if not isinstance(content, dict):
        raise BadFile(f"{path} is no mapping of {', '.join(FIELDS)}")
    _check_fields(path, "", content, FIELDS)
    for field in ("name", "task", "settings"):
        if field not in content:
            raise BadFile(f"{path} lacks {field!r}")
    card = content.get("card") or {}
    _check_fields(path, "card: ", card, CARD_FIELDS)
    mining = content.get("mine") or []
    for i, step in enumerate(mining):
        _check_fields(path, f"mine, step {i + 1}: ", step, MINING_FIELDS)
    labels = content.get("labels") or {}
    return Recipe(
        name=str(content["name"]),
        task=str(content["task"]),
        settings=dict(content["settings"]),
        card=dict(card),
        mine=tuple(mining),
        labels={str(label): str(name) for label, name in labels.items()},
    )


def settings_of(recipe: Recipe, kind: type, *, overrides: dict[str, Any]) -> dict[str, Any]:
    """Arguments for a request: what was given with the command, then the recipe's.

    Args:
        kind: the request's dataclass, which knows the allowed names.

    Raises:
        InvalidInput: a setting that the request does not have.
    """
    allowed = {field.name for field in dataclasses.fields(kind)}
    settings = {**recipe.settings, **{k: v for k, v in overrides.items() if v is not None}}
    unknown = sorted(settings.keys() - allowed)
    if unknown:
        raise InvalidInput(
            f"the recipe {recipe.name!r} sets {', '.join(unknown)}; allowed are {', '.join(sorted(allowed))}"
        )
    for name in ("validation", "test"):
        if settings.get(name) is not None and name in allowed:
            settings[name] = find_data(settings[name])
    if settings.get("paths") is not None:
        settings["paths"] = [find_data(path) for path in settings["paths"]]
    return settings


def find_data(path: str | Path) -> Path:
    """
    Raises:
        BadFile: nowhere.
    """
    places = [Path(path), data_root() / path]
    for place in places:
        if place.exists():
            return place
    raise BadFile(
        f"{path} was not found here nor in {data_root()}; set BIFOCAL_DATA to the folder of the data"
    )


def data_root() -> Path:
    return Path(os.environ.get("BIFOCAL_DATA", Path(__file__).parents[3].parent / "shared" / "data"))


def _check_fields(path: Path, where: str, content: Any, allowed: Sequence[str]) -> None:
    if not isinstance(content, dict):
        raise BadFile(f"{path}: {where}is no mapping of {', '.join(allowed)}")
    unknown = sorted(str(key) for key in content.keys() - set(allowed))
    if unknown:
        raise BadFile(f"{path}: {where}{', '.join(unknown)} is not known; allowed are {', '.join(allowed)}")
