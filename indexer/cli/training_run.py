"""What `bifocal train` and `bifocal pretrain` do."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.engine.model_files import find_bi_encoder
from app.engine.trained_models import Architecture, Task
from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli.failures import INTERRUPTED, fail
from indexer.cli.mining import Request as Mining
from indexer.cli.mining import mine_negatives
from indexer.cli.printing import output as console
from indexer.cli.printing import print_fields, print_table
from indexer.cli.training_progress import training_progress
from indexer.training.bases import find_base
from indexer.training.cards import CardFacts, card
from indexer.training.comparison import TABLE, compare_freezing, table
from indexer.training.pretraining.running import pretrain as run_pretraining
from indexer.training.recipes import Recipe, find_data, read_recipe, settings_of
from indexer.training.request import PretrainingRequest, TrainingRequest
from indexer.training.running import TASKS, Trained, TrainingInterrupted, unknown_task
from indexer.training.running import train as run_training
from indexer.training.saving import save_trained_model

RUNS = Path("build/training")
MINED = "mined"
LENS = "lens"
"""Task of recipes that pretrain."""
SHIPPED: Mapping[str, tuple[Task, Architecture]] = {
    "sequence": ("sequence", "BertForSequenceClassification"),
    "token": ("token", "BertForTokenClassification"),
    LENS: ("lens", "BertForPreTraining"),
    "reader-reranker": ("reader-reranker", "JointModel"),
}
HIDDEN = {"task", "base", "freeze", "paths", "output", "resume", "offline", "checkpoint_s", "max_tokens"}
"""Settings that a card says elsewhere, or that change nothing."""


def train(
    settings: Settings,
    task: str | None,
    *,
    recipe: str | None,
    given: dict[str, Any],
    output: Path | None,
    name: str | None,
    is_resumed: bool,
    compares_freezing: bool,
) -> None:
    """
    Raises:
        InvalidInput: neither task nor recipe, or one that is not known.
    """
    followed = _recipe(task, recipe)
    if followed.task == LENS:
        pretrain(settings, recipe=recipe, given=given, output=output, name=name, is_resumed=is_resumed)
        return
    if followed.task not in TASKS:
        raise unknown_task(followed.task)
    name = name or followed.name
    output = output or RUNS / (name or followed.task)
    found = settings_of(followed, TrainingRequest, overrides=given)
    request = TrainingRequest(
        **{
            **found,
            "paths": [*found["paths"], *_mined(settings, followed, output / MINED)],
            "task": followed.task,
            "output": output,
            "resume": is_resumed,
            "offline": settings.offline,
        }
    )
    try:
        if compares_freezing:
            _compare(request)
        else:
            _train(settings, request, followed, name)
    except TrainingInterrupted as error:
        fail(str(error), code=INTERRUPTED)


def _mined(settings: Settings, recipe: Recipe, folder: Path) -> list[Path]:
    """Files of hard negatives; those that are there already are taken as they are."""
    files = []
    for step in recipe.mine:
        file = folder / step["output"]
        files.append(file)
        if not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            mine_negatives(
                settings,
                Mining(
                    data=find_data(step["data"]) if "data" in step else None,
                    split=step.get("split", "train"),
                    squad=[find_data(path) for path in step.get("squad", ())],
                    output=file,
                    negatives=step.get("negatives", 2),
                    limit=step.get("limit"),
                    home=None,
                    seed=recipe.settings.get("seed", 1),
                    titles=step.get("titles", False),
                ),
            )
    return files


def pretrain(
    settings: Settings,
    *,
    recipe: str | None,
    given: dict[str, Any],
    output: Path | None,
    name: str | None,
    is_resumed: bool,
) -> None:
    followed = _recipe(LENS, recipe)
    name = name or followed.name
    found = settings_of(followed, PretrainingRequest, overrides=given)
    request = PretrainingRequest(
        **{
            "objective": "mlm+nsp",
            **found,
            "output": output or RUNS / (name or "pretraining"),
            "resume": is_resumed,
            "offline": settings.offline,
        }
    )
    _check_choices(request)
    if name:
        _check_ships(LENS, request)
    try:
        with training_progress(name or request.objective) as show:
            trained = run_pretraining(request, show)
    except TrainingInterrupted as error:
        fail(str(error), code=INTERRUPTED)
    _report(trained, request)
    _save(trained, request, followed, LENS, settings.models / name if name else None)


def _recipe(task: str | None, recipe: str | None) -> Recipe:
    if recipe is not None:
        followed = read_recipe(recipe)
        if task is not None and task != followed.task:
            raise InvalidInput(f"the recipe {recipe!r} trains {followed.task}, not {task}")
        return followed
    if task is None:
        raise InvalidInput(f"name a task ({', '.join(TASKS)}) or a --recipe")
    return Recipe("", task, {"paths": []}, {})


def _train(settings: Settings, request: TrainingRequest, recipe: Recipe, name: str) -> None:
    if name:
        _check_ships(request.task, request)
    with training_progress(name or request.task) as show:
        trained = run_training(request, show)
    _report(trained, request)
    _save(trained, request, recipe, request.task, settings.models / name if name else None)


def _report(trained: Trained, request: TrainingRequest | PretrainingRequest) -> None:
    result = trained.result
    shown = {"before": result.before, "validation": result.validation, "test": result.test}
    print_fields({**{k: v for k, v in shown.items() if v}, "seconds": result.seconds})
    console().print(f"Written to {request.output}", markup=False, soft_wrap=True)


def _check_choices(request: PretrainingRequest) -> None:
    """
    Raises:
        InvalidInput: an objective or a configuration that is not known.
    """
    for option, value, allowed in (
        ("--objective", request.objective, ("mlm", "mlm+nsp", "mlm+sop")),
        ("--config", request.config, (None, "bert", "albert")),
    ):
        if value not in allowed:
            known = ", ".join(filter(None, allowed))
            raise InvalidInput(f"{option} {value!r} is not known; allowed are {known}")


def _check_ships(task: str, request: TrainingRequest | PretrainingRequest) -> None:
    """
    Raises:
        InvalidInput: models of this task or base are not stored as differences from a base.
        ModelUnavailable: the base is none that the service can share.
    """
    base = find_base(request.base, offline=request.offline)
    is_new = isinstance(request, PretrainingRequest) and request.config is not None
    if task not in SHIPPED or base.architecture != "bert" or is_new:
        raise InvalidInput(
            f"--name stores {', '.join(SHIPPED)} models as their difference from a BERT; this is "
            f"{'a new model' if is_new else f'a {task} model of a {base.architecture}'}: leave --name out, "
            "and name the folder of the model in a setting"
        )
    find_bi_encoder(request.base, offline=request.offline)


def _save(
    trained: Trained,
    request: TrainingRequest | PretrainingRequest,
    recipe: Recipe,
    task: str,
    folder: Path | None,
) -> None:
    """Into the folder of the models, if that was asked for."""
    if folder is None:
        return
    prepared = trained.prepared
    shipped, architecture = SHIPPED[task]
    labels = [recipe.labels.get(label, label) for label in prepared.labels]
    written = card(
        trained.result,
        name=folder.name,
        command=["bifocal", "train", "--recipe", recipe.name] if recipe.name else ["bifocal", *sys.argv[1:]],
        settings=_shown_settings(request),
        facts=CardFacts(**recipe.card),
        max_tokens=prepared.max_tokens,
        labels=labels,
    )
    save_trained_model(
        trained.module,
        folder,
        task=shipped,
        architecture=architecture,
        base=find_bi_encoder(request.base, offline=request.offline),
        max_tokens=prepared.max_tokens,
        labels=labels,
        reads_capitals=isinstance(request, TrainingRequest) and request.capitals,
        card=written,
    )
    console().print(f"Saved as {folder}", markup=False, soft_wrap=True)


def _shown_settings(request: TrainingRequest | PretrainingRequest) -> dict[str, Any]:
    fields = {name: getattr(request, name) for name in request.__dataclass_fields__ if name not in HIDDEN}
    return {name: value for name, value in fields.items() if value is not None}


def _compare(request: TrainingRequest) -> None:
    results = compare_freezing(request, training_progress)
    print_table(TABLE, table(results))
    console().print(f"Written to {request.output}", markup=False, soft_wrap=True)
