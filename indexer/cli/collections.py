"""`bifocal collections`: list, create, delete, stats."""

from typing import Annotated

import typer

from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.
collections = typer.Typer(
    name="collections", help="List, create, delete and measure collections.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Name of the collection.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@collections.command("list")
def list_(as_json: AsJson = False) -> None:
    """All collections by name."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.list_collections(Settings.from_environment(), as_json=as_json)


@collections.command()
def create(
    name: Name,
    max_tokens: Annotated[
        int, typer.Option(min=32, max=8192, help="Tokens of a passage, title included.")
    ] = 256,
    overlap_tokens: Annotated[
        int, typer.Option(min=0, help="Tokens that neighbours share; at most half.")
    ] = 32,
) -> None:
    """Create a collection for the model of BIFOCAL_EMBEDDER. Repeating it changes nothing."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.create_collection(
            Settings.from_environment(), name, max_tokens=max_tokens, overlap_tokens=overlap_tokens
        )


@collections.command()
def delete(name: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete a collection with its documents."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        if not yes:
            typer.confirm(f"Delete the collection {name!r} with all its documents?", abort=True)
        listing.delete_collection(Settings.from_environment(), name)


@collections.command()
def stats(name: Name, as_json: AsJson = False) -> None:
    """Documents, passages, tokens, and the state of the index."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.show_stats(Settings.from_environment(), name, as_json=as_json)
