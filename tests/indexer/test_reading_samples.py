"""Real files of the public sample collection."""

import re
from collections import Counter
from pathlib import PurePosixPath

import pytest

from app.domain import Document
from app.errors import BadFile
from indexer.reading import SUFFIXES
from indexer.reading.files import read_file
from tests.indexer.texts import archived

SAMPLES = "sample-documents.tar.gz"
OFFICE = "markitdown-test-files/"
PDFS = "pdf-sample-files/"


def sample(path: str) -> Document:
    [document] = read_file(PurePosixPath(path).name, archived(SAMPLES)[path])
    return document


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize(
    "name",
    [
        "RECEIPT-2024-TXN-98765_retail_purchase",
        "REPAIR-2022-INV-001_multipage",
        "SPARSE-2024-INV-1234_borderless_table",
        "movie-theater-booking-2024",
        "test",
    ],
)
def test_pdfs_have_the_words_of_their_expected_text(name: str) -> None:
    """Words that a line end broke are joined here and not in the expected text, at most 3 in 100."""
    expected = words(archived(SAMPLES)[f"{OFFICE}expected_outputs/{name}.md"].decode())
    found = words(sample(f"{OFFICE}{name}.pdf").text)
    assert (found & expected).total() >= 0.97 * expected.total()


def test_every_sample_of_an_allowed_kind_is_read_or_refused_for_a_known_reason() -> None:
    reasons = Counter[str]()
    for path, body in archived(SAMPLES).items():
        if PurePosixPath(path).suffix in SUFFIXES and body:
            try:
                assert all(d.text.strip() for d in read_file(path, body))
                reasons["read"] += 1
            except BadFile as error:
                reasons["scan" if "no text layer" in str(error) else str(error)] += 1
    password = f"{PDFS}005-libreoffice-writer-password/libreoffice-writer-password.pdf"
    refusals = {reason: n for reason, n in reasons.items() if reason != "read"}
    assert refusals == {"scan": 6, f"{password}: it is protected by a password; save it without one": 1}
    assert reasons["read"] >= 40


def test_pages_of_a_real_pdf_start_where_they_should() -> None:
    document = sample(f"{PDFS}004-pdflatex-4-pages/pdflatex-4-pages.pdf")
    assert len(document.page_starts) == 4
    assert all(document.text[start - 1] == "\n" for start in document.page_starts[1:])


def test_columns_of_a_real_pdf_are_read_one_after_the_other() -> None:
    text = sample(f"{PDFS}026-latex-multicolumn/multicolumn.pdf").text
    assert "adipiscing elit. Ut purus elit, vestibulum ut, placerat\nac, adipiscing vitae, felis." in text


def test_a_csv_in_shift_jis_is_read() -> None:
    assert sample(f"{OFFICE}test_mskanji.csv").text.startswith("名前: 佐藤太郎; 年齢: 30; 住所: 東京\n")


def test_a_real_word_file_has_its_title_and_table() -> None:
    document = sample(f"{OFFICE}test.docx")
    assert document.title == "AutoGen: Enabling Next-Gen LLM Applications via Multi-Agent Conversation"
    assert "\n1 | 2 | 3 | 4 | 5 | 6\n" in document.text


def test_slides_of_a_real_presentation_are_pages() -> None:
    document = sample(f"{OFFICE}test.pptx")
    assert len(document.page_starts) == 6
    assert (
        "1b92870d-e3b5-4e65-8153-919f4ff45592"
        in document.text[document.page_starts[2] : document.page_starts[3]]
    )


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
def test_sheets_of_a_real_workbook_are_pages(suffix: str) -> None:
    document = sample(f"{OFFICE}test.{suffix}")
    assert len(document.page_starts) == 2
    assert "6ff4173b-42a5-4784-9b19-f49caff4d93d" in document.text[: document.page_starts[1]]


def test_a_real_page_has_its_text_without_scripts() -> None:
    document = sample(f"{OFFICE}test_wikipedia.html")
    assert document.title == "Microsoft - Wikipedia"
    assert (
        "Microsoft Corporation is an American multinational corporation and technology company"
        in " ".join(document.text.split())
    )
    assert "function(" not in document.text
