"""`bifocal jobs`: list, show, cancel."""

from typing import Annotated

import typer

from indexer.cli.failures import reported

# Imports inside the functions: see commands.py.
jobs = typer.Typer(name="jobs", help="List, show and cancel jobs.", no_args_is_help=True)

JobId = Annotated[str, typer.Argument(help="Id of the job.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@jobs.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Jobs to show.")] = 20, as_json: AsJson = False
) -> None:
    """The newest jobs."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.list_jobs(Settings.from_environment(), limit=limit, as_json=as_json)


@jobs.command()
def show(job_id: JobId, as_json: AsJson = False) -> None:
    """One job with what was rejected in it."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.show_job(Settings.from_environment(), job_id, as_json=as_json)


@jobs.command()
def cancel(job_id: JobId) -> None:
    """Stop a job; what it has stored stays."""
    with reported():
        from app.settings import Settings
        from indexer.cli import listing

        listing.cancel_job(Settings.from_environment(), job_id)
