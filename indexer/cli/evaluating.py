"""`bifocal evaluate`: measures search on judged queries, in this process or through a running service."""

import datetime as dt
from collections.abc import Sequence

from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli.evaluation_results import print_results
from indexer.cli.evaluation_subject import Request, open_subject, progress
from indexer.evaluation.asking import Ask, Measured, ask_all
from indexer.evaluation.comparison import differences
from indexer.evaluation.configurations import Configuration, configurations
from indexer.evaluation.dataset import Dataset, read_folder, read_judged
from indexer.evaluation.results import Evaluation
from indexer.evaluation.writing import write


def evaluate(settings: Settings, request: Request) -> None:
    chosen = configurations(request.modes)
    dataset = _read(request)
    if request.limit_queries is not None:
        dataset = dataset.first(request.limit_queries)
    with open_subject(settings, request, dataset) as subject:
        measured = _ask(dataset, chosen, subject.ask)
    evaluation = Evaluation(
        dataset=dataset,
        measured=measured,
        differences=differences(measured),
        subject=subject.details,
        indexed=subject.indexed,
        made_at=dt.datetime.now(dt.UTC),
    )
    found = write(evaluation, request.output)
    print_results(found, request.output)


def _read(request: Request) -> Dataset:
    """
    Raises:
        InvalidInput: options that do not go together.
        BadFile
    """
    if request.data is not None:
        if request.queries is not None or request.qrels is not None:
            raise InvalidInput("--data brings queries and judgements; leave out --queries and --qrels")
        return read_folder(request.data, split=request.split)
    if request.queries is None or request.qrels is None or request.collection is None:
        raise InvalidInput(
            "give --data DIR, or --collection, --queries and --qrels for documents that are in a collection"
        )
    return read_judged(request.queries, request.qrels)


def _ask(dataset: Dataset, chosen: Sequence[Configuration], ask: Ask) -> list[Measured]:
    measured = []
    for configuration in chosen:
        with progress(configuration.name, len(dataset.queries)) as advance:
            measured.append(ask_all(dataset, configuration, ask, advance=lambda: advance(1)))
    return measured
