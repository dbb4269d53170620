"""`bifocal models`: prepare, list."""

from typing import Annotated

import typer

from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.
models = typer.Typer(name="models", help="Prepare and list models.", no_args_is_help=True)


@models.command()
def prepare() -> None:
    """Compile and quantise all models once, into BIFOCAL_CACHE; does nothing where that is done."""
    with reported():
        from app.settings import Settings
        from indexer.cli import preparing

        preparing.prepare(Settings.from_environment())


@models.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """The models in use, with fingerprint, limits and runtime."""
    with reported():
        from app.settings import Settings
        from indexer.cli import preparing

        preparing.list_models(Settings.from_environment(), as_json=as_json)
