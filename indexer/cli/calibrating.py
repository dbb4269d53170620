"""`bifocal calibrate`: fits what a trained reader and reranker needs beside its weights, as it is served."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.domain import Hit, Rerank
from app.engine.pairs import TitledText
from app.engine.reader import Reader
from app.engine.reading_models import ReadingModels, load_reading_models
from app.engine.trained_models import DESCRIPTION, find_trained_model
from app.errors import InvalidInput
from app.services.reranking import first_stage_shares
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import open_embedder, open_store
from indexer.cli.corpora import progress, put_in
from indexer.cli.printing import output
from indexer.evaluation.dataset import Dataset, read_corpus, read_folder
from indexer.training.joint.calibrating import (
    BY_FIRST_STAGE,
    BY_RERANKER,
    Candidates,
    Fitted,
    fit_answer,
    fit_combination,
)
from indexer.training.joint.groups import NO_ANSWER, read_groups

DEPTH = 100
WINDOWS = 8


@dataclass(frozen=True, slots=True)
class Request:
    model: str
    answers: Sequence[Path]
    ranking: Sequence[str]
    """DIR:SPLIT."""
    limit: int | None
    home: Path | None
    collection: str


def calibrate(settings: Settings, request: Request) -> None:
    """
    Raises:
        InvalidInput, BadFile, ModelUnavailable
    """
    if not request.answers and not request.ranking:
        raise InvalidInput("give --answers FILE or --ranking DIR:SPLIT, or both")
    datasets = [_dataset(each, request.limit) for each in request.ranking]
    files = find_trained_model(request.model, models=settings.models, offline=settings.offline)
    settings = settings.model_copy(update={"reranker": str(files.folder), "reader": str(files.folder)})
    fitted: dict[str, Any] = {}
    models = load_reading_models(settings)
    try:
        if request.answers:
            assert models.reader is not None
            fitted["answer"] = _fit_answer(models.reader, request.answers, request.limit)
        if datasets:
            found = _fit_combination(settings, models, datasets, request)
            fitted["combination"] = asdict(found.combination)
            _print_combination(found)
    finally:
        models.close()
    _write(files.folder / DESCRIPTION, fitted)
    output().print(f"{files.folder / DESCRIPTION} now says: {json.dumps(fitted)}", markup=False)


def _fit_answer(reader: Reader, paths: Sequence[Path], limit: int | None) -> dict[str, float]:
    groups = [group for path in paths for group in read_groups(path)]
    pairs = [(group.question, each) for group in groups for each in group.candidates]
    pairs = [(question, each) for question, each in pairs if each.answer is not None][:limit]
    margins, relevances, is_right = [], [], []
    with progress("reading", len(pairs)) as advance:
        for question, candidate in pairs:
            passage = TitledText(candidate.text, candidate.title)
            (reading,) = reader.read(question, [passage], max_windows=WINDOWS).passages
            advance(1)
            if reading is not None and reading.spans:
                margins.append(reading.spans[0].margin)
                relevances.append(reading.relevance or 0.0)
                is_right.append(candidate.answer != NO_ANSWER)
    return fit_answer(np.array(margins), np.array(relevances), np.array(is_right))


def _fit_combination(
    settings: Settings, models: ReadingModels, datasets: Sequence[Dataset], request: Request
) -> Fitted:
    candidates, qrels = {}, {}
    for dataset in datasets:
        with ExitStack() as stack:
            home = (request.home or settings.home) / dataset.name
            of_set = settings.model_copy(update={"home": home})
            store = stack.enter_context(open_store(of_set))
            assert dataset.corpus is not None
            collection, _ = put_in(
                store,
                of_set,
                request.collection,
                read_corpus(dataset.corpus),
                n_documents=dataset.n_documents,
            )
            embedder = stack.enter_context(open_embedder(of_set))
            search = Search(store.rows, store.index, embedder, models)
            candidates[dataset.name] = dict(_candidates(search, collection.name, dataset))
            qrels[dataset.name] = dataset.qrels
    return fit_combination(candidates, qrels)


def _candidates(search: Search, collection: str, dataset: Dataset) -> Iterator[tuple[str, Candidates]]:
    with progress(f"reranking {dataset.name}", len(dataset.queries)) as advance:
        for query_id, query in dataset.queries.items():
            hits = search.asymmetric(collection, query, top_k=DEPTH, passages_per_hit=1, rerank=Rerank()).hits
            advance(1)
            if any(hit.rerank is not None for hit in hits):
                yield query_id, _of_first_stage(hits)


def _of_first_stage(reranked: Sequence[Hit]) -> Candidates:
    """Hits keep the score of every stage, so that the order before the reranking is known, too."""
    before = [dataclasses.replace(hit, score=hit.fused or 0.0) for hit in reranked]
    before.sort(key=lambda hit: (-hit.score, hit.document_id))
    return Candidates(
        document_ids=[hit.document_id for hit in before],
        first_stage=first_stage_shares(before),
        logits=np.array([np.nan if hit.rerank is None else hit.rerank for hit in before]),
    )


def _print_combination(found: Fitted) -> None:
    for name, ndcg in found.ndcg.items():
        output().print(
            f"{name}: nDCG@10 {ndcg[BY_FIRST_STAGE]:.4f} by the first stage, {ndcg[BY_RERANKER]:.4f} by the "
            f"reranker, {ndcg[found.combination]:.4f} by both",
            markup=False,
        )


def _dataset(name: str, limit: int | None) -> Dataset:
    folder, _, split = name.rpartition(":")
    if not folder:
        raise InvalidInput(f"--ranking {name}: a folder in BEIR layout and a split are needed, as DIR:SPLIT")
    dataset = read_folder(Path(folder), split=split)
    return dataset if limit is None else dataset.first(limit)


def _write(file: Path, fitted: Mapping[str, Any]) -> None:
    described = json.loads(file.read_bytes())
    described["calibration"] = {**(described.get("calibration") or {}), **fitted}
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    part.replace(file)
