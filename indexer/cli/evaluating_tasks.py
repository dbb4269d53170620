"""`bifocal evaluate --task`: judges the model that has the role."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from app.engine.description import HeadDescription
from app.engine.reader import Reader
from app.engine.reading_models import load_reading_models
from app.engine.sequence_model import SequenceModel
from app.engine.tagger import Tagger
from app.engine.text_models import load_text_models
from app.errors import InvalidInput, ModelNotConfigured
from app.settings import Settings
from indexer.cli.corpora import progress
from indexer.cli.printing import output, print_table
from indexer.cli.tasks import Task
from indexer.evaluation.task_examples import read_labelled, read_squad, read_tagged
from indexer.evaluation.task_judging import Judged, judge_answers, judge_entities, judge_labels
from indexer.evaluation.task_models import answering, classifying, finding, named_as
from indexer.evaluation.task_results import write_task

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskRequest:
    task: Task
    data: Path
    output: Path
    limit: int | None
    model: str | None = None
    """Of several that classify."""


@dataclass(frozen=True, slots=True)
class Outcome:
    judged: Judged
    model: HeadDescription
    seconds: float


def evaluate_task(settings: Settings, request: TaskRequest) -> None:
    """
    Raises:
        BadFile: the data are not of the task's form.
        ModelNotConfigured: no model has the role.
    """
    judge: dict[Task, Callable[[Settings, TaskRequest], Outcome]] = {
        "qa": _answers,
        "ner": _entities,
        "classification": _labels,
    }
    outcome = judge[request.task](settings, request)
    found = write_task(
        outcome.judged,
        request.output,
        task=request.task,
        data=request.data,
        model=asdict(outcome.model),
        seconds=outcome.seconds,
    )
    _print(found, request.output)


def _answers(settings: Settings, request: TaskRequest) -> Outcome:
    questions = _limited(read_squad(request.data), request)
    models = load_reading_models(settings)
    try:
        if models.reader is None:
            raise ModelNotConfigured("no model reads: set BIFOCAL_READER")
        judge = partial(judge_answers, questions, answering(models.reader))
        return _outcome(judge, len(questions), models.reader)
    finally:
        models.close()


def _entities(settings: Settings, request: TaskRequest) -> Outcome:
    sentences = _limited(read_tagged(request.data), request)
    models = load_text_models(settings)
    try:
        if models.tagger is None:
            raise ModelNotConfigured("no model finds entities: set BIFOCAL_TAGGER")
        judge = partial(judge_entities, sentences, finding(models.tagger))
        return _outcome(judge, len(sentences), models.tagger)
    finally:
        models.close()


def _labels(settings: Settings, request: TaskRequest) -> Outcome:
    """Of the model that is named, or the only one."""
    texts = _limited(read_labelled(request.data), request)
    models = load_text_models(settings)
    try:
        model = _chosen(models.sequence, request.model)
        judge = partial(judge_labels, named_as(model.labels, texts), classifying(model))
        return _outcome(judge, len(texts), model)
    finally:
        models.close()


def _chosen(models: Mapping[str, SequenceModel], name: str | None) -> SequenceModel:
    """
    Raises:
        ModelNotConfigured: there is none.
        InvalidInput: none of that name, or several and none is named.
    """
    if not models:
        raise ModelNotConfigured("no model classifies texts: set BIFOCAL_SEQUENCE_MODELS")
    if name is None and len(models) == 1:
        return next(iter(models.values()))
    if name is None or name not in models:
        raise InvalidInput(f"name one of the models with --model: {', '.join(models)}")
    return models[name]


def _outcome(
    judge: Callable[..., Judged], n_examples: int, model: Reader | Tagger | SequenceModel
) -> Outcome:
    model.load()
    with progress(model.description.name, n_examples) as advance:
        began = time.monotonic()
        judged = judge(advance=lambda: advance(1))
        return Outcome(judged, model.description, time.monotonic() - began)


def _limited(examples: Sequence[T], request: TaskRequest) -> Sequence[T]:
    return examples if request.limit is None else examples[: request.limit]


def _print(found: dict[str, Any], folder: Path) -> None:
    for note in found["notes"]:
        output().print(f"Note: {note}.", markup=False)
    print_table(
        ("metric", "value", "95 % interval"),
        [
            (
                name,
                f"{value['mean']:.4f}",
                "" if value["low"] is None else f"{value['low']:.4f} to {value['high']:.4f}",
            )
            for name, value in found["metrics"].items()
        ],
    )
    output().print(
        f"{found['n_examples']} examples, {found['examples_per_s']} a second, by {found['model']['name']}. "
        f"Written to {folder}: results.json, examples.tsv.",
        markup=False,
    )


def task_request(
    task: Task,
    *,
    data: Path | None,
    output: Path,
    limit: int | None,
    model: str | None,
    others: Mapping[str, object],
) -> TaskRequest:
    """`others` are options of searches by name.

    Raises:
        InvalidInput: no data, or an option of searches was given, too.
    """
    if data is None:
        raise InvalidInput("--task needs a file of examples: give --data")
    given = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
    if given:
        raise InvalidInput(f"--task judges a model, not searches: leave out {', '.join(given)}")
    return TaskRequest(task, data, output, limit, model)
