"""`bifocal search`: the searches of the service, in this process."""

import dataclasses
import json
import re
from contextlib import ExitStack

from rich.console import Console
from rich.text import Text

from app.domain import Answer, Hit, Mode, PassageHit, Rerank, SearchResult
from app.engine.reading_models import ReadingModels
from app.errors import BadFilter
from app.filters import Filter, parse_filter
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import open_embedders, open_reading, open_store
from indexer.cli.printing import output, print_json

PASSAGES_PER_HIT = 2
LIKELY = 0.5
"""Probability from which an answer is shown as one."""
SPACES = re.compile(r"\s+")


def search(
    settings: Settings,
    query: str,
    *,
    collection_name: str,
    top_k: int,
    is_symmetric: bool,
    mode: Mode,
    filter_json: str | None,
    is_reranked: bool | None,
    as_json: bool,
) -> None:
    """
    Args:
        is_reranked: None: as the reranker's calibration says.

    Raises:
        BadFilter: what was given as filter is no JSON, or no filter.
        ModelNotConfigured: it is to be reranked, and no model does.
    """
    condition = parsed_filter(filter_json)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings))
        embedder = stack.enter_context(open_embedders(settings))
        is_first_stage = is_symmetric or is_reranked is False
        reading = ReadingModels() if is_first_stage else stack.enter_context(open_reading(settings))
        lenses = Search(store.rows, store.index, embedder, reading)
        if is_symmetric:
            result = lenses.symmetric(collection_name, text=query, top_k=top_k, condition=condition)
        else:
            result = lenses.asymmetric(
                collection_name,
                query,
                top_k=top_k,
                passages_per_hit=PASSAGES_PER_HIT,
                mode=mode,
                condition=condition,
                rerank=_rerank(reading, is_reranked),
                answers=reading.reader is not None,
            )
    if as_json:
        print_json(dataclasses.asdict(result))
    else:
        print_hits(result, output())


def _rerank(models: ReadingModels, is_reranked: bool | None) -> Rerank | None:
    is_wanted = models.rerank_by_default if is_reranked is None else is_reranked
    return Rerank(is_required=bool(is_reranked)) if is_wanted else None


def parsed_filter(filter_json: str | None) -> Filter | None:
    if filter_json is None:
        return None
    try:
        return parse_filter(json.loads(filter_json))
    except (ValueError, RecursionError) as error:
        raise BadFilter(f"the filter is no JSON: {error}") from error


def print_hits(result: SearchResult, console: Console) -> None:
    if result.query_truncated:
        console.print(
            f"Only the first {result.max_query_tokens} of {result.n_query_tokens} tokens of the query count."
        )
    for notice in result.notices:
        console.print(notice[0].upper() + notice[1:] + ".", markup=False)
    if not result.hits:
        console.print("Nothing found.")
    for hit in result.hits:
        console.print(_heading(hit))
        for passage in hit.passages:
            console.print(_quote(passage, hit.answer))
    if result.reranking is not None and result.reranking.n_reranked < result.reranking.n_candidates:
        console.print(f"Reranked {result.reranking.n_reranked} of {result.reranking.n_candidates}.")
    timings = ", ".join(f"{stage} {ms:.1f} ms" for stage, ms in result.timings_ms.items())
    console.print(Text(timings, style="dim"))


def _heading(hit: Hit) -> Text:
    heading = Text(f"{hit.score:6.3f}  ", style="bold")
    heading.append(hit.title or hit.document_id, style="bold cyan")
    if hit.title:
        heading.append(f"  {hit.document_id}", style="dim")
    return heading


def _quote(passage: PassageHit, answer: Answer | None) -> Text:
    """On one line; the answer stands out, where it is likely one."""
    place = f"characters {passage.start} to {passage.end}"
    if passage.page is not None:
        place = f"page {passage.page}, {place}"
    quote = Text(" " * 8, style="dim")
    start, end = 0, 0
    if answer is not None and answer.score >= LIKELY and passage.start <= answer.start < passage.end:
        start, end = answer.start - passage.start, answer.end - passage.start
    for part, style in (
        (passage.text[:start], "not dim"),
        (passage.text[start:end], "not dim bold underline"),
        (passage.text[end:], "not dim"),
    ):
        quote.append(SPACES.sub(" ", part), style=style)
    quote.append(f"  ({place})", style="dim")
    return quote
