"""`bifocal aliases`: list, set, delete."""

from typing import Annotated

import typer

from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.
aliases = typer.Typer(name="aliases", help="Other names of collections.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the alias.")]


@aliases.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """All aliases by name, and where they lead."""
    with reported():
        from app.settings import Settings
        from indexer.cli import naming

        naming.list_aliases(Settings.from_environment(), as_json=as_json)


@aliases.command("set")
def set_(
    name: Name, collection: Annotated[str, typer.Argument(help="Name of the collection it leads to.")]
) -> None:
    """Make an alias, or lead it to another collection, from the next request on."""
    with reported():
        from app.settings import Settings
        from indexer.cli import naming

        naming.set_alias(Settings.from_environment(), name, collection)


@aliases.command()
def delete(name: Name) -> None:
    """Delete an alias; the collection stays."""
    with reported():
        from app.settings import Settings
        from indexer.cli import naming

        naming.delete_alias(Settings.from_environment(), name)
