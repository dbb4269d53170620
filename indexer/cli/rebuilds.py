"""`bifocal reindex` and `bifocal rollback`."""

from typing import Annotated

import typer

from app.domain import IndexSettings
from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.


def reindex(  # noqa: PLR0917  typer makes options of them, callable by name alone
    collection: Annotated[str, typer.Argument(help="Name of the collection.")],
    max_tokens: Annotated[
        int | None, typer.Option(min=32, max=8192, help="Tokens of a passage, title included.")
    ] = None,
    overlap_tokens: Annotated[
        int | None, typer.Option(min=0, max=4096, help="Tokens that neighbours share; at most half.")
    ] = None,
    exact_limit: Annotated[
        int | None,
        typer.Option(min=-1, help="Vectors above which the index is approximate; -1: BIFOCAL_EXACT_LIMIT."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Bi-encoder that runs: BIFOCAL_EMBEDDER or the second. [the first]"),
    ] = None,
    standby: Annotated[
        str | None, typer.Option(help="Name of the new form, later of the former. [COLLECTION-standby]")
    ] = None,
) -> None:
    """Build a collection anew beside the one in use, and switch to it.

    What is not given stays as it is. Searches and writes go on meanwhile.
    """
    with reported():
        from app.settings import Settings
        from indexer.cli import reindexing

        limit = None if exact_limit == -1 else exact_limit
        raise SystemExit(
            reindexing.reindex(
                Settings.from_environment(),
                collection,
                max_tokens=max_tokens,
                overlap_tokens=overlap_tokens,
                index=None if exact_limit is None else IndexSettings(limit),
                model=model,
                standby=standby,
            )
        )


def rollback(collection: Annotated[str, typer.Argument(help="Name of the collection.")]) -> None:
    """Go back to what a collection was before it was re-indexed, with what was written since."""
    with reported():
        from app.settings import Settings
        from indexer.cli import reindexing

        raise SystemExit(reindexing.roll_back(Settings.from_environment(), collection))
