"""The commands with their arguments.

Each imports what it runs only when it is called: the libraries of models and indexes take seconds to
import, and `bifocal --help` must not.
"""

import importlib.metadata
from pathlib import Path
from typing import Annotated

import typer

from app.domain import Mode
from indexer.cli.aliases import aliases
from indexer.cli.collections import collections
from indexer.cli.failures import reported
from indexer.cli.jobs import jobs
from indexer.cli.keys import keys
from indexer.cli.models import models
from indexer.cli.rebuilds import reindex, rollback
from indexer.cli.tasks import Task
from indexer.cli.training import pretrain, train

app = typer.Typer(
    help="Bifocal: self-hosted semantic search. Settings are BIFOCAL_* variables: see `bifocal settings`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(aliases)
app.add_typer(collections)
app.add_typer(jobs)
app.add_typer(keys)
app.add_typer(models)
app.command()(reindex)
app.command()(rollback)
app.command()(train)
app.command()(pretrain)

Host = Annotated[str | None, typer.Option(help="Address to listen on instead of BIFOCAL_HOST.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on instead of BIFOCAL_PORT.")]
CollectionName = Annotated[str, typer.Option("--collection", "-c", help="Name of the collection.")]
Supervised = Annotated[bool, typer.Option("--die-with-parent", hidden=True)]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"bifocal {importlib.metadata.version('bifocal')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def up(
    host: Host = None,
    port: Port = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Also index the demo corpus into the collection 'demo'.")
    ] = False,
) -> None:
    """Start the service and its worker, and keep both running until Ctrl-C."""
    with reported():
        from indexer.cli import upping

        raise SystemExit(upping.up(host=host, port=port, with_demo=demo))


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer requests.")] = 1,
    die_with_parent: Supervised = False,
) -> None:
    """Answer requests. Writes wait until a worker runs, too."""
    with reported():
        from indexer.cli import serving

        serving.serve(host=host, port=port, n_processes=workers, is_child=die_with_parent)


@app.command()
def worker(die_with_parent: Supervised = False) -> None:
    """Work off jobs: read, split, encode, store. A second worker stands by."""
    with reported():
        from indexer.cli import working

        working.work(is_child=die_with_parent)


@app.command()
def ingest(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders or patterns.")],
    collection: CollectionName = "default",
) -> None:
    """Read files into a collection. Repeating it is cheap: what did not change costs nothing.

    Ids are paths relative to the folder given, with forward slashes. Exit code 1: a file was rejected.
    """
    with reported():
        from app.settings import Settings
        from indexer.cli.ingest_run import ingest as run_ingest

        raise SystemExit(run_ingest(Settings.from_environment(), paths, collection_name=collection))


@app.command()
def search(  # noqa: PLR0917  typer makes options of them, callable by name alone
    query: Annotated[str, typer.Argument(help="A question, or a text with --symmetric.")],
    collection: CollectionName = "default",
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="Documents to show.")] = 5,
    symmetric: Annotated[bool, typer.Option(help="Find documents that say the same as a text.")] = False,
    mode: Annotated[Mode, typer.Option(help="Rank by meaning, by words, or by both.")] = "hybrid",
    filter_json: Annotated[
        str | None,
        typer.Option("--filter", help='Only these documents, as JSON: {"field": "lang", "eq": "en"}.'),
    ] = None,
    rerank: Annotated[
        bool | None,
        typer.Option(help="Rank the best ones anew, query and passage read together."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Search a collection in this process; no service has to run."""
    with reported():
        from app.settings import Settings
        from indexer.cli import searching

        searching.search(
            Settings.from_environment(),
            query,
            collection_name=collection,
            top_k=top_k,
            is_symmetric=symmetric,
            mode=mode,
            filter_json=filter_json,
            is_reranked=rerank,
            as_json=as_json,
        )


@app.command()
def answer(
    question: Annotated[str, typer.Argument(help="A question in plain words.")],
    collection: CollectionName = "default",
    top_k: Annotated[int, typer.Option(min=1, max=100, help="Answers to show.")] = 3,
    filter_json: Annotated[
        str | None, typer.Option("--filter", help="Only out of these documents, as JSON; see search.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer a question with quotations from a collection; no service has to run."""
    with reported():
        from app.settings import Settings
        from indexer.cli import answering

        answering.answer(
            Settings.from_environment(),
            question,
            collection_name=collection,
            top_k=top_k,
            filter_json=filter_json,
            as_json=as_json,
        )


@app.command()
def evaluate(
    *,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder in BEIR layout: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which judgements of --data.")] = "test",
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Where documents are, or are put.")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="Queries for --collection, as JSON lines.")] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements for --collection, a table.")] = None,
    modes: Annotated[
        str, typer.Option(help="Ways of searching to compare, between commas; rerank is one, too.")
    ] = ("lexical,dense,hybrid"),
    url: Annotated[str | None, typer.Option(help="Ask the service that runs there.")] = None,
    home: Annotated[
        Path | None,
        typer.Option(help="Keep the store there: repeating costs little. A temporary one without it."),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("evaluation"),
    limit_queries: Annotated[int | None, typer.Option(min=1, help="Ask only the first ones.")] = None,
    tune: Annotated[
        str | None,
        typer.Option(
            help="Split of --data, or with --queries a file of judgements, on which to choose how hybrid "
            "search fuses, to be judged on the other."
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Make what --tune has chosen the collection's default.")
    ] = False,
    task: Annotated[
        Task | None,
        typer.Option(
            help="Judge a model instead of searches, on the file --data: qa (SQuAD's JSON), ner (a token and "
            "its tag a line) or classification (JSON lines with text and label)."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which classifier --task classification judges, of several.")
    ] = None,
) -> None:
    """Measure how well queries find the documents that were judged relevant, and write a report."""
    with reported():
        from app.settings import Settings
        from indexer.cli.evaluating import evaluate as run_evaluation
        from indexer.cli.evaluating_tasks import evaluate_task, task_request
        from indexer.cli.evaluation_subject import Request

        if task is not None:
            of_searches = {"collection": collection, "queries": queries, "qrels": qrels, "url": url}
            request = task_request(
                task,
                data=data,
                output=output,
                limit=limit_queries,
                model=model,
                others={**of_searches, "home": home, "tune": tune, "apply": apply},
            )
            evaluate_task(Settings.from_environment(), request)
            return
        run_evaluation(
            Settings.from_environment(),
            Request(
                data=data,
                split=split,
                queries=queries,
                qrels=qrels,
                collection=collection,
                modes=[mode.strip() for mode in modes.split(",") if mode.strip()],
                url=url,
                home=home,
                output=output,
                limit_queries=limit_queries,
                tune=tune,
                apply=apply,
            ),
        )


@app.command()
def mine(  # noqa: PLR0917  typer makes options of them, callable by name alone
    output: Annotated[Path, typer.Option(help="File of JSON lines, for `bifocal train reader-reranker`.")],
    data: Annotated[Path | None, typer.Option(help="Folder in BEIR layout.")] = None,
    split: Annotated[str, typer.Option(help="Which judgements of --data.")] = "train",
    squad: Annotated[list[Path] | None, typer.Option(help="Files in SQuAD's format.")] = None,
    titles: Annotated[
        bool, typer.Option("--titles", help="Ask the titles of --data instead of its judged queries.")
    ] = False,
    negatives: Annotated[int, typer.Option(min=1, max=20, help="For each question.")] = 2,
    limit: Annotated[int | None, typer.Option(min=1, help="Questions, chosen at random.")] = None,
    home: Annotated[
        Path | None,
        typer.Option(help="Keep the store there: repeating costs little. A temporary one without it."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides which questions and negatives are chosen.")] = 1,
) -> None:
    """Find passages that look like answers and are none, to train a reranker on."""
    with reported():
        from app.settings import Settings
        from indexer.cli.mining import Request, mine_negatives

        mine_negatives(
            Settings.from_environment(),
            Request(
                data=data,
                split=split,
                squad=squad or [],
                output=output,
                negatives=negatives,
                limit=limit,
                home=home,
                seed=seed,
                titles=titles,
            ),
        )


@app.command()
def calibrate(  # noqa: PLR0917  typer makes options of them, callable by name alone
    model: Annotated[str, typer.Argument(help="Name or folder of a model of `bifocal train`.")],
    answers: Annotated[
        list[Path] | None,
        typer.Option(help="Questions with and without an answer in their text: SQuAD's format, or groups."),
    ] = None,
    ranking: Annotated[
        list[str] | None, typer.Option(help="Judged queries, DIR:SPLIT of a folder in BEIR layout.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Questions of each.")] = None,
    home: Annotated[
        Path | None, typer.Option(help="Folder with a store for each folder's corpus. [BIFOCAL_HOME]")
    ] = None,
    collection: Annotated[str, typer.Option("--collection", "-c", help="In these.")] = "calibration",
) -> None:
    """Fit a reader's probability of an answer, and how a reranker is combined with the first stage."""
    with reported():
        from app.settings import Settings
        from indexer.cli.calibrating import Request
        from indexer.cli.calibrating import calibrate as run_calibration

        run_calibration(
            Settings.from_environment(),
            Request(
                model=model,
                answers=answers or [],
                ranking=ranking or [],
                limit=limit,
                home=home,
                collection=collection,
            ),
        )


@app.command()
def settings(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print every setting with its value and meaning."""
    with reported():
        from indexer.cli.inspecting import print_settings

        print_settings(as_json=as_json)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to; it must not exist.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put the whole store into one file, also while the service and its worker run."""
    with reported():
        from app.settings import Settings
        from indexer.cli import backing_up

        backing_up.back_up(Settings.from_environment(), file, as_json=as_json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="Made by `bifocal backup`.")],
    data: Annotated[Path | None, typer.Option(help="Folder for the store, instead of BIFOCAL_HOME.")] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Where a store is already: keep it in a folder beside the new one."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make a store out of a backup, with its indexes. The file is checked before anything is changed."""
    with reported():
        from app.settings import Settings
        from indexer.cli import backing_up

        settings = Settings.from_environment()
        if data is not None:
            settings = settings.model_copy(update={"home": data})
        backing_up.restore(settings, file, is_replaced=replace, as_json=as_json)


@app.command()
def doctor(
    worker: Annotated[bool, typer.Option("--worker", help="Only whether a worker is alive.")] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Make anew what can be made from the rest. No worker may be running."),
    ] = False,
    sample: Annotated[int, typer.Option(min=0, help="Passages to encode anew and compare.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the store, the model and the machine. Exit code 1: there are problems, left after the repair."""
    with reported():
        from app.settings import Settings
        from indexer.cli import examining

        settings = Settings.from_environment()
        if worker:
            raise SystemExit(examining.examine_worker(settings))
        raise SystemExit(examining.examine(settings, is_repaired=repair, sample=sample, as_json=as_json))
