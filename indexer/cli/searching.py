"""`bifocal search`: the searches of the service, in this process."""

import dataclasses
import json

from rich.console import Console
from rich.text import Text

from app.domain import Hit, Mode, PassageHit, SearchResult
from app.errors import BadFilter
from app.filters import Filter, parse_filter
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import open_embedder, open_store
from indexer.cli.printing import output, print_json

PASSAGES_PER_HIT = 2


def search(
    settings: Settings,
    query: str,
    *,
    collection_name: str,
    top_k: int,
    is_symmetric: bool,
    mode: Mode,
    filter_json: str | None,
    as_json: bool,
) -> None:
    """
    Raises:
        BadFilter: what was given as filter is no JSON, or no filter.
    """
    condition = _parsed(filter_json)
    with open_store(settings) as store, open_embedder(settings) as embedder:
        lenses = Search(store.rows, store.index, embedder)
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
            )
    if as_json:
        print_json(dataclasses.asdict(result))
    else:
        print_hits(result, output())


def _parsed(filter_json: str | None) -> Filter | None:
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
            console.print(_quote(passage))
    timings = ", ".join(f"{stage} {ms:.1f} ms" for stage, ms in result.timings_ms.items())
    console.print(Text(timings, style="dim"))


def _heading(hit: Hit) -> Text:
    heading = Text(f"{hit.score:6.3f}  ", style="bold")
    heading.append(hit.title or hit.document_id, style="bold cyan")
    if hit.title:
        heading.append(f"  {hit.document_id}", style="dim")
    return heading


def _quote(passage: PassageHit) -> Text:
    place = f"characters {passage.start} to {passage.end}"
    if passage.page is not None:
        place = f"page {passage.page}, {place}"
    quote = Text(" " * 8, style="dim")
    quote.append(" ".join(passage.text.split()), style="not dim")
    quote.append(f"  ({place})", style="dim")
    return quote
