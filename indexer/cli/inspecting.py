"""`bifocal settings` and `bifocal doctor`."""

from app.errors import BifocalError
from app.settings import PREFIX, Settings
from indexer.cli.composition import open_embedder, open_rows, open_store
from indexer.cli.failures import FAILED
from indexer.cli.printing import output, print_json, print_table


def print_settings(*, as_json: bool) -> None:
    settings = Settings.from_environment()
    values = settings.model_dump(mode="json")
    if as_json:
        print_json({PREFIX + name.upper(): value for name, value in values.items()})
        return
    print_table(
        ("variable", "value", "meaning"),
        [
            (PREFIX + name.upper(), values[name], field.description or "")
            for name, field in Settings.model_fields.items()
        ],
    )


def examine(*, only_worker: bool) -> int:
    """Print what was looked at, and give the exit code."""
    settings = Settings.from_environment()
    examinations = {"worker": _worker}
    if not only_worker:
        examinations = {"store": _store, "model": _model, "worker": _worker}
    console = output()
    is_well = True
    for name, examination in examinations.items():
        try:
            console.print(f"{name}: {examination(settings)}", markup=False, soft_wrap=True)
        except (_NotWell, BifocalError, OSError) as error:
            console.print(f"{name}: NOT WELL: {error}", markup=False, soft_wrap=True)
            is_well = False
    return 0 if is_well else FAILED


class _NotWell(Exception):
    pass


def _store(settings: Settings) -> str:
    with open_store(settings) as store:
        collections = store.rows.collections()
        damages = [damage for each in collections for damage in store.index.damages(each)]
        if damages:
            raise _NotWell("; ".join(damages) + "; the worker rebuilds such files from the rows")
        return (
            f"{len(collections)} collections in {settings.home}, {store.rows.n_unfinished_jobs()} jobs to do"
        )


def _model(settings: Settings) -> str:
    with open_embedder(settings) as embedder:
        embedder.encode_queries(["Does the model answer?"])
        return f"{embedder.description.name} runs on {embedder.description.runtime}"


def _worker(settings: Settings) -> str:
    with open_rows(settings) as rows:
        if not rows.worker_alive():
            raise _NotWell("none is running, so writes wait; start `bifocal worker` or `bifocal up`")
        return "running"
