"""Presentations into text: slides are pages."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pptx

from app.domain import Document
from indexer.reading.archives import checked_archive
from indexer.reading.docx import core_title
from indexer.reading.html import CELL_GAP
from indexer.reading.pages import join_pages

MAX_DEPTH = 50
"""Of groups within groups."""


def read_pptx(name: str, body: bytes) -> list[Document]:
    """Per slide its shapes in their order, tables row by row, then the speaker's notes."""
    archive = checked_archive(body)
    presentation = pptx.Presentation(io.BytesIO(body))
    slides = ["\n".join(_slide_parts(slide)) for slide in presentation.slides]
    text, starts = join_pages(slides, are_separate=True)
    return [Document(name, text, title=core_title(archive) or _first_title(presentation), page_starts=starts)]


def _first_title(presentation: Any) -> str | None:
    titles = (slide.shapes.title for slide in presentation.slides)
    return next(
        (text for t in titles if t is not None and (text := " ".join(t.text_frame.text.split()))), None
    )


def _slide_parts(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        yield title.text_frame.text.strip() + "\n"
    title_id = None if title is None else title.shape_id
    yield from _texts((s for s in slide.shapes if s.shape_id != title_id), depth=0)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) and frame.text.strip():
        yield "\n" + frame.text.strip()


def _texts(shapes: Iterable[Any], *, depth: int) -> Iterator[str]:
    for shape in shapes:
        if getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield CELL_GAP.join(cell.text.replace("\n", " ").strip() for cell in row.cells)
        elif getattr(shape, "has_chart", False) and shape.chart.has_title:
            yield shape.chart.chart_title.text_frame.text.strip()
        elif getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
            yield shape.text_frame.text.replace("\v", "\n").strip()
        elif hasattr(shape, "shapes") and depth < MAX_DEPTH:
            yield from _texts(shape.shapes, depth=depth + 1)
