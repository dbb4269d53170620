"""PDF files into text with page numbers, by PDFium."""

import re

import pypdfium2
import regex

from app.domain import Document
from app.errors import BadFile
from indexer.reading.pages import join_pages

BROKEN_WORD = re.compile(r"(\w+)\x02\n?(\w+)")
"""PDFium puts this control character where a hyphen ends a line."""
CONTROLS = regex.compile(r"[^\P{Cc}\n\t]+|\ufffe")
"""Left by fonts without a mapping to Unicode."""
NO_TITLE = re.compile(
    r"(untitled|\(anonymous\)|.*\.(docx?|pptx?|xlsx?|odt|pdf|tex|dvi|indd|qxd))", re.IGNORECASE
)
"""What programs write where nobody chose a title."""
PROGRAM_PREFIX = re.compile(r"^Microsoft (Word|PowerPoint|Excel) - ")


def read_pdf(name: str, body: bytes) -> list[Document]:
    """Text of all pages; page n begins at `page_starts[n - 1]`."""
    pdf = _opened(body)
    try:
        title = _title(pdf)
        pages = [_page_text(pdf, i) for i in range(len(pdf))]
    finally:
        pdf.close()
    text, page_starts = join_pages([_clean(page) for page in _mended(pages)])
    if not text.strip():
        raise BadFile(
            f"no text layer on {len(pages)} pages, so it is probably a scan; text recognition (OCR) is not"
            " done, run the file through an OCR program first"
        )
    return [Document(name, text, title=title, page_starts=page_starts)]


def _opened(body: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise BadFile("it is protected by a password; save it without one") from error
        raise BadFile(f"it is damaged or no PDF ({error})") from error


def _page_text(pdf: pypdfium2.PdfDocument, index: int) -> str:
    page = pdf[index]
    text_page = page.get_textpage()
    text = text_page.get_text_bounded()
    text_page.close()
    page.close()
    return str(text).replace("\r\n", "\n").replace("\r", "\n")


def _title(pdf: pypdfium2.PdfDocument) -> str | None:
    title = PROGRAM_PREFIX.sub("", " ".join(CONTROLS.sub(" ", pdf.get_metadata_value("Title")).split()))
    return None if not title or NO_TITLE.fullmatch(title) else title


def _mended(pages: list[str]) -> list[str]:
    """Words broken at line ends, joined; the hyphen stays where the other words speak for it."""
    unbroken = BROKEN_WORD.sub(" ", "\n".join(pages).lower())
    words = set(re.findall(r"\w+(?:-\w+)*", unbroken))

    def whole(match: re.Match[str]) -> str:
        one, two = match[1], match[2]
        is_word = f"{one}{two}".lower() in words
        is_compound = f"{one}-{two}".lower() in words or {one.lower(), two.lower()} <= words
        return f"{one}-{two}" if is_compound and not is_word else f"{one}{two}"

    return [BROKEN_WORD.sub(whole, page) for page in pages]


def _clean(page: str) -> str:
    return "\n".join(CONTROLS.sub("", line).rstrip() for line in page.split("\n")).strip("\n")
