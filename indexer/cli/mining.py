"""`bifocal mine`: training data for rerankers, with hard negatives found by the product's own search."""

import random
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from app.errors import InvalidInput
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import open_embedder, open_store
from indexer.cli.corpora import progress, put_in
from indexer.cli.printing import output
from indexer.evaluation.dataset import read_folder
from indexer.training.joint.groups import as_json
from indexer.training.joint.mining import mine
from indexer.training.joint.sources import Source, beir_source, squad_source, title_source


@dataclass(frozen=True, slots=True)
class Request:
    data: Path | None
    split: str
    squad: Sequence[Path]
    output: Path
    negatives: int
    limit: int | None
    home: Path | None
    seed: int
    titles: bool = False
    """The titles of `data` are the questions, not its judged queries."""


def mine_negatives(settings: Settings, request: Request) -> None:
    """
    Raises:
        InvalidInput, BadFile
    """
    name, source = _source(request)
    questions = list(source.questions)
    random.Random(request.seed).shuffle(questions)  # noqa: S311  a sample, not a secret
    questions = questions[: request.limit]
    with ExitStack() as stack:
        home = request.home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bifocal-")))
        settings = settings.model_copy(update={"home": home})
        store = stack.enter_context(open_store(settings))
        collection, _ = put_in(
            store, settings, name, iter(source.documents), n_documents=len(source.documents)
        )
        embedder = stack.enter_context(open_embedder(settings))
        search = Search(store.rows, store.index, embedder)
        part = request.output.with_name(f"{request.output.name}.part")
        n_written = 0
        advance = stack.enter_context(progress("mining", len(questions)))
        with part.open("w", encoding="utf-8") as file:
            for group in mine(
                search, collection.name, questions, n_negatives=request.negatives, seed=request.seed
            ):
                advance(1)
                if group is not None:
                    file.write(as_json(group) + "\n")
                    n_written += 1
        part.replace(request.output)
    output().print(
        f"{n_written} of {len(questions)} questions have {request.negatives} negatives, in {request.output}",
        markup=False,
    )


def _source(request: Request) -> tuple[str, Source]:
    if (request.data is None) == (not request.squad):
        raise InvalidInput("give either --data DIR or --squad FILE (one or several)")
    if request.data is None:
        if request.titles:
            raise InvalidInput("--titles needs --data DIR, whose corpus has titles")
        return "mining-squad", squad_source(request.squad)
    if request.titles:
        return "mining-titles", title_source(request.data)
    return "mining", beir_source(read_folder(request.data, split=request.split))
