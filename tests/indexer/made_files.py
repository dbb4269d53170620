"""Small files of each kind, made on the spot."""

import io
import zipfile
from collections.abc import Mapping, Sequence

import pptx
import xlsxwriter
from pptx.util import Inches

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CONTAINER = "urn:oasis:names:tc:opendocument:xmlns:container"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def archive(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


def pdf(pages: Sequence[str], *, title: str = "") -> bytes:
    """One line of text per page; PDFium rebuilds the missing cross-reference table."""
    kids = " ".join(f"{10 + 2 * i} 0 R" for i in range(len(pages)))
    parts = [
        "%PDF-1.4",
        "1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        f"2 0 obj <</Type/Pages/Count {len(pages)}/Kids[{kids}]>> endobj",
        "3 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
        f"4 0 obj <</Title({title})>> endobj",
    ]
    for i, page in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td ({page}) Tj ET"
        parts.append(
            f"{10 + 2 * i} 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {11 + 2 * i} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>> endobj\n"
            f"{11 + 2 * i} 0 obj <</Length {len(content)}>> stream\n{content}\nendstream endobj"
        )
    return "\n".join([*parts, "trailer <</Root 1 0 R/Info 4 0 R>>", "%%EOF"]).encode("latin-1")


def docx(body: str, *, title: str = "") -> bytes:
    """`body` is WordprocessingML."""
    main = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    document = f'<w:document xmlns:w="{WORD}" xmlns:m="{MATH}"><w:body>{body}</w:body></w:document>'
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{main}</Relationships>',
            "word/document.xml": document,
            "docProps/core.xml": f'<c xmlns:dc="{DUBLIN_CORE}"><dc:title>{title}</dc:title></c>',
        }
    )


def word_paragraph(text: str, *, style: str | None = None) -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def presentation(slides: Sequence[tuple[str, str, str]]) -> bytes:
    """(title, text, notes) of each slide."""
    made = pptx.Presentation()
    for title, text, notes in slides:
        slide = made.slides.add_slide(made.slide_layouts[5])
        slide.shapes.title.text = title
        slide.shapes.add_textbox(0, Inches(2), Inches(5), Inches(1)).text_frame.text = text
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def workbook(sheets: Mapping[str, Mapping[tuple[int, int], str | int | float]]) -> bytes:
    """Values by (row, column) of each sheet."""
    buffer = io.BytesIO()
    made = xlsxwriter.Workbook(buffer)
    for name, cells in sheets.items():
        sheet = made.add_worksheet(name)
        for (row, column), value in cells.items():
            sheet.write(row, column, value)
    made.close()
    return buffer.getvalue()


def epub(chapters: Sequence[str], *, title: str = "A book") -> bytes:
    """Chapters are the contents of `body` elements."""
    ids = range(1, len(chapters) + 1)
    kind = 'media-type="application/xhtml+xml"'
    items = "".join(f'<item id="c{i}" href="text/c%20{i}.xhtml" {kind}/>' for i in ids)
    references = "".join(f'<itemref idref="c{i}"/>' for i in ids)
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="{DUBLIN_CORE}">'
        f"<metadata><dc:title>{title}</dc:title></metadata>"
        f'<manifest><item id="nav" href="nav.xhtml" properties="nav" {kind}/>{items}</manifest>'
        f'<spine><itemref idref="nav"/>{references}</spine></package>'
    )
    container = '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles>'
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'<container xmlns="{CONTAINER}">{container}</container>',
            "OEBPS/book.opf": package,
            "OEBPS/nav.xhtml": "<html><body>Table of contents</body></html>",
            **{
                f"OEBPS/text/c {i}.xhtml": f"<html><body>{chapter}</body></html>"
                for i, chapter in zip(ids, chapters, strict=True)
            },
        }
    )
