"""`bifocal keys`: create, list, revoke."""

from typing import Annotated

import typer

from app.keys import Scope
from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.
keys = typer.Typer(name="keys", help="Create, list and revoke keys of callers.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Who will use it, for lists and logs.")],
    scope: Annotated[
        list[Scope] | None, typer.Option("--scope", "-s", help="What it may do; repeat it for several.")
    ] = None,
    collection: Annotated[
        list[str] | None,
        typer.Option("--collection", "-c", help="Restrict it to this collection; repeat it for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print its secret, this once. From the first key on, nobody gets in without one.

    The scope is read, unless another is given.
    """
    with reported():
        from app.settings import Settings
        from indexer.cli import keeping_keys

        keeping_keys.create_key(
            Settings.from_environment(),
            name,
            scopes=scope or [Scope.READ],
            collections=collection or None,
            as_json=as_json,
        )


@keys.command("list")
def list_(as_json: AsJson = False) -> None:
    """All keys without their secrets, which nobody but their holders has."""
    with reported():
        from app.settings import Settings
        from indexer.cli import keeping_keys

        keeping_keys.list_keys(Settings.from_environment(), as_json=as_json)


@keys.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `bifocal keys list` shows it.")],
) -> None:
    """Refuse a key from the next request on. Revoking the last one locks everyone out."""
    with reported():
        from app.settings import Settings
        from indexer.cli import keeping_keys

        keeping_keys.revoke_key(Settings.from_environment(), key_id)
