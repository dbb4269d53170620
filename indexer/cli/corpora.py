"""A corpus in a store of this process, and how far a command is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from app.domain import Collection
from app.settings import Settings
from indexer.cli.composition import Store, find_or_create_collection
from indexer.cli.on_demand import WorkerOnDemand
from indexer.cli.printing import output
from indexer.evaluation import local
from indexer.evaluation.dataset import CorpusDocument
from indexer.evaluation.indexing import Indexed


def put_in(
    store: Store, settings: Settings, name: str, documents: Iterator[CorpusDocument], *, n_documents: int
) -> tuple[Collection, Indexed]:
    """Until the collection of that name holds exactly these documents; a worker runs as long as needed.

    Raises:
        JobFailed, InvalidInput: see `indexer.evaluation.local.index`.
    """
    collection = find_or_create_collection(store.rows, name, settings)
    with WorkerOnDemand(store, settings) as on_demand, progress("indexing", n_documents) as advance:
        indexed = local.index(
            store.rows, collection, documents, check_worker=on_demand.check, advance=advance
        )
    return collection, indexed


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, a line when done elsewhere."""
    console = output()
    if not console.is_terminal:
        yield lambda _: None
        console.print(f"{what}: {total} done", markup=False)
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), console=console
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda n: bar.advance(task, n)
