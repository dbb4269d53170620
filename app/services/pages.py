"""On which page of its document an answer is."""

import dataclasses
from bisect import bisect_right

from app.domain import Answer, Collection, Hit
from app.errors import DocumentNotFound
from app.storage.rows import Rows


def with_page_of_answer(hit: Hit, rows: Rows, collection: Collection) -> Hit:
    """The hit, its answer with the page on which it begins: its passage may have begun on an earlier one."""
    if hit.answer is None or hit.answer.page is None:
        return hit
    return dataclasses.replace(hit, answer=on_its_page(hit.answer, hit.document_id, rows, collection))


def on_its_page(answer: Answer, document_id: str, rows: Rows, collection: Collection) -> Answer:
    """As it is where the document has no pages, or was changed meanwhile."""
    if answer.page is None:
        return answer
    try:
        document = rows.document(collection.key, document_id).document
    except DocumentNotFound:
        return answer
    if document.text[answer.start : answer.end] != answer.text or not document.page_starts:
        return answer
    return dataclasses.replace(answer, page=max(1, bisect_right(document.page_starts, answer.start)))
