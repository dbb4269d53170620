"""`bifocal evaluate`: measures search on judged queries, in this process or through a running service."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from app.errors import InvalidInput
from app.settings import Settings
from indexer.cli.corpora import progress
from indexer.cli.evaluation_results import print_results
from indexer.cli.evaluation_subject import Request, open_subject
from indexer.evaluation.asking import Ask, Measured, ask_all
from indexer.evaluation.comparison import differences
from indexer.evaluation.configurations import RERANK, Configuration, configurations
from indexer.evaluation.dataset import Dataset, read_folder, read_judged
from indexer.evaluation.results import Evaluation
from indexer.evaluation.tuning import N_RERANKED_TRIALS, N_TRIALS, Tuning, tune
from indexer.evaluation.writing import write


def evaluate(settings: Settings, request: Request) -> None:
    chosen = configurations(request.modes)
    dataset = _limited(_read(request), request)
    tuning_set = _tuning_set(request, dataset)
    with open_subject(settings, request, dataset) as subject:
        tuning = None if tuning_set is None else _tune(tuning_set, subject.ask, request)
        if tuning is not None:
            chosen.append(tuning.configuration)
        measured = _ask(dataset, chosen, subject.ask)
        if tuning is not None and request.apply:
            subject.apply(tuning.settings)
    evaluation = Evaluation(
        dataset=dataset,
        measured=measured,
        differences=differences(measured),
        subject=subject.details,
        indexed=subject.indexed,
        made_at=dt.datetime.now(dt.UTC),
        tuning=tuning,
    )
    found = write(evaluation, request.output)
    print_results(found, request.output, is_applied=request.apply)


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


def _tuning_set(request: Request, judged_on: Dataset) -> Dataset | None:
    """
    Raises:
        InvalidInput: there is nothing that the result could be judged on, or written to.
        BadFile
    """
    _check_apply(request)
    if request.tune is None:
        return None
    if request.data is not None and request.tune == request.split:
        raise InvalidInput(
            f"--tune and --split are both {request.split!r}; what is chosen on some queries must be judged "
            "on others"
        )
    tuning_set = _limited(_read_tuning_set(request, request.tune), request)
    shared = next((query_id for query_id in tuning_set.queries if query_id in judged_on.queries), None)
    if shared is not None:
        raise InvalidInput(
            f"the query {shared!r} is judged in both; what is chosen on some queries must be judged on others"
        )
    return tuning_set


def _read_tuning_set(request: Request, tune: str) -> Dataset:
    if request.data is not None:
        return read_folder(request.data, split=tune)
    assert request.queries is not None
    if not Path(tune).is_file():
        raise InvalidInput(
            f"--tune names a split of --data or, with --queries, a file of judgements; {tune!r} is no file"
        )
    return read_judged(request.queries, Path(tune))


def _check_apply(request: Request) -> None:
    """Raises InvalidInput."""
    if request.apply and request.tune is None:
        raise InvalidInput("--apply writes what --tune has chosen; give that, too")
    if request.apply and request.data is not None and request.home is None and request.url is None:
        raise InvalidInput(
            "--apply writes to the collection, which is in a temporary store here; keep one with --home, or "
            "ask a service with --url"
        )


def _limited(dataset: Dataset, request: Request) -> Dataset:
    return dataset if request.limit_queries is None else dataset.first(request.limit_queries)


def _tune(dataset: Dataset, ask: Ask, request: Request) -> Tuning:
    """How many documents are reranked is chosen, too, where reranking is one of the modes."""
    is_reranked = RERANK in request.modes
    n_trials = N_RERANKED_TRIALS if is_reranked else N_TRIALS
    with progress("tuning", n_trials * len(dataset.queries)) as advance:
        return tune(dataset, ask, is_reranked=is_reranked, advance=lambda: advance(1))


def _ask(dataset: Dataset, chosen: Sequence[Configuration], ask: Ask) -> list[Measured]:
    measured = []
    for configuration in chosen:
        with progress(configuration.name, len(dataset.queries)) as advance:
            measured.append(ask_all(dataset, configuration, ask, advance=lambda: advance(1)))
    return measured
