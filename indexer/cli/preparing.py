"""What `bifocal models` does."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from app.settings import Settings
from indexer.cli.composition import open_embedders, open_reading
from indexer.cli.printing import output, print_fields, print_json
from indexer.preparation import is_prepared
from indexer.preparation import prepare as prepare_all

Show = Callable[[str, float], None]


def prepare(settings: Settings) -> None:
    """Say where the compiled models are, and make those before that are missing."""
    prepare_if_needed(settings)
    for name, folder in prepare_all(settings).items():
        output().print(f"{name} is ready in {folder}", markup=False, soft_wrap=True)


def prepare_if_needed(settings: Settings) -> None:
    """Compile the models where that is not done yet, and show how far it is; silent otherwise."""
    if not is_prepared(settings):
        with _progress() as show:
            prepare_all(settings, progress=show)


def list_models(settings: Settings, *, as_json: bool) -> None:
    with open_embedders(settings) as embedders, open_reading(settings) as reading:
        models: list[dict[str, object]] = [
            *({"role": "bi-encoder", **dataclasses.asdict(each.description)} for each in embedders.all),
            *({"role": role, **dataclasses.asdict(head.description)} for role, head in reading.by_role),
        ]
    if as_json:
        print_json(models)
        return
    for model in models:
        print_fields(model)


@contextmanager
def _progress() -> Iterator[Show]:
    """A bar on a terminal, a line per stage elsewhere."""
    console = output()
    if not console.is_terminal:
        shown: set[str] = set()

        def show(stage: str, _share: float) -> None:
            if stage not in shown:
                shown.add(stage)
                console.print(f"Preparing {stage}", markup=False)

        yield show
        return
    columns = (TextColumn("Preparing {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda stage, share: bar.update(task, description=stage, completed=share)
