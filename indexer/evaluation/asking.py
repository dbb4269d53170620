"""Asks all queries of a data set in one configuration, one after the other, and keeps ranking and times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from indexer.evaluation.configurations import Configuration
from indexer.evaluation.dataset import Dataset
from indexer.evaluation.metrics import DEPTH, Run, Values, measure


@dataclass(frozen=True, slots=True)
class Answer:
    document_ids: tuple[str, ...]
    """Best first."""
    timings_ms: Mapping[str, float]
    is_truncated: bool
    """Whether the end of the query was cut off."""


Ask = Callable[[str, Configuration], Answer]
"""The first DEPTH documents for a query."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One configuration on one data set. Arrays are in the order of the data set's queries."""

    configuration: Configuration
    run: Run
    metrics: Mapping[str, Values]  # each (q,)
    latencies_ms: Mapping[str, Values]
    """Per stage, (q,); 0 where a query did without it."""
    n_truncated: int

    @property
    def name(self) -> str:
        return self.configuration.name


def ask_all(
    dataset: Dataset, configuration: Configuration, ask: Ask, *, advance: Callable[[], None] = lambda: None
) -> Measured:
    """`advance` is called after each query. The first query is asked twice, and its first time forgotten:
    what is loaded on first use is no latency of a query.
    """
    ask(next(iter(dataset.queries.values())), configuration)
    answers = {}
    for query_id, text in dataset.queries.items():
        answers[query_id] = ask(text, configuration)
        advance()
    run = {query_id: answer.document_ids[:DEPTH] for query_id, answer in answers.items()}
    stages = dict.fromkeys(stage for answer in answers.values() for stage in answer.timings_ms)
    return Measured(
        configuration=configuration,
        run=run,
        metrics=measure(run, dataset.qrels),
        latencies_ms={
            stage: np.array([answer.timings_ms.get(stage, 0.0) for answer in answers.values()])
            for stage in stages
        },
        n_truncated=sum(answer.is_truncated for answer in answers.values()),
    )
