"""`bifocal answer`: quotations that answer a question, in this process."""

import dataclasses

from rich.console import Console
from rich.text import Text

from app.services.answering import Answering
from app.services.answers import AnswerResult, FoundAnswer
from app.services.search import Search
from app.settings import Settings
from indexer.cli.composition import open_embedders, open_reading, open_store
from indexer.cli.printing import output, print_json
from indexer.cli.searching import LIKELY, SPACES, parsed_filter

AROUND_CHARS = 120
"""Of the passage, shown on both sides of an answer."""


def answer(
    settings: Settings,
    question: str,
    *,
    collection_name: str,
    top_k: int,
    filter_json: str | None,
    as_json: bool,
) -> None:
    """
    Raises:
        BadFilter: what was given as filter is no JSON, or no filter.
        ModelNotConfigured: no model finds answers.
    """
    condition = parsed_filter(filter_json)
    with (
        open_store(settings) as store,
        open_reading(settings) as reading,
    ):
        answering = Answering(reading)
        with open_embedders(settings) as embedder:
            result = answering.from_collection(
                collection_name,
                question,
                search=Search(store.rows, store.index, embedder),
                rows=store.rows,
                top_k=top_k,
                condition=condition,
            )
    if as_json:
        print_json(dataclasses.asdict(result))
    else:
        print_answers(result, output())


def print_answers(result: AnswerResult, console: Console) -> None:
    if result.n_question_tokens > result.max_question_tokens:
        console.print(
            f"Only the first {result.max_question_tokens} of {result.n_question_tokens} tokens of the "
            "question count."
        )
    if result.answerable_probability < LIKELY:
        console.print("Probably not answered here.")
    for found in result.answers:
        console.print(_heading(found))
        console.print(_around(found))
    timings = ", ".join(f"{stage} {ms:.1f} ms" for stage, ms in result.timings_ms.items())
    console.print(Text(timings, style="dim"))


def _heading(found: FoundAnswer) -> Text:
    heading = Text(f"{found.answer.score:6.3f}  ", style="bold")
    heading.append(SPACES.sub(" ", found.answer.text), style="bold green")
    heading.append(f"  {found.title or found.document_id}", style="cyan")
    return heading


def _around(found: FoundAnswer) -> Text:
    answer, passage = found.answer, found.passage
    start, end = answer.start - passage.start, answer.end - passage.start
    before = ("…" if start > AROUND_CHARS else "") + passage.text[max(0, start - AROUND_CHARS) : start]
    after = passage.text[end : end + AROUND_CHARS] + ("…" if len(passage.text) > end + AROUND_CHARS else "")
    place = f"characters {answer.start} to {answer.end}"
    if answer.page is not None:
        place = f"page {answer.page}, {place}"
    quote = Text(" " * 8)
    quote.append(SPACES.sub(" ", before), style="dim")
    quote.append(SPACES.sub(" ", passage.text[start:end]), style="bold underline")
    quote.append(SPACES.sub(" ", after), style="dim")
    quote.append(f"  ({found.document_id}, {place})", style="dim")
    return quote
