"""The page of an answer, of real rows."""

import dataclasses

from app.domain import Answer, Collection
from app.services.pages import on_its_page
from tests.services.library import Library
from tests.storage.building import encoded, make_collection, write

TEXT = "A castle stands.\fIts harbour is Konstantinopel."


def answer(text: str, page: int | None) -> Answer:
    start = TEXT.index(text)
    return Answer(text, start, start + len(text), page, 0.5, 0.0, 0.0, None)


def books(library: Library, page_starts: tuple[int, ...]) -> Collection:
    collection = make_collection(library.rows, "books")
    write(library.rows, collection, encoded("book", TEXT, page_starts=page_starts))
    return collection


def test_the_page_of_an_answer_is_that_on_which_it_begins(library: Library) -> None:
    collection = books(library, (0, 17))
    for text, page in (("castle", 1), ("Konstantinopel", 2), ("Its", 2), ("stands.\fIts", 1)):
        found = on_its_page(answer(text, 1), "book", library.rows, collection)
        assert found == answer(text, page)


def test_a_document_without_pages_or_that_is_gone_leaves_it_as_it_was(library: Library) -> None:
    collection = books(library, ())
    assert on_its_page(answer("castle", None), "book", library.rows, collection).page is None
    assert on_its_page(answer("castle", 3), "gone", library.rows, collection).page == 3
    changed = dataclasses.replace(answer("castle", 3), text="another")
    assert on_its_page(changed, "book", library.rows, collection).page == 3
