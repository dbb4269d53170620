"""Word files into text: Mammoth makes HTML of them, with headings, lists, tables and notes."""

import io
import zipfile

import mammoth
from lxml import etree

from app.domain import Document
from indexer.reading.archives import checked_archive
from indexer.reading.html import html_text

CORE_PROPERTIES = "docProps/core.xml"
TITLE_STYLE = "p[style-name='Title'] => h1:fresh"
MAIN_PART = "word/document.xml"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
DUBLIN_CORE_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def read_docx(name: str, body: bytes) -> list[Document]:
    archive = checked_archive(body)
    markup = mammoth.convert_to_html(
        io.BytesIO(_with_formulas_as_text(archive, body)),
        style_map=TITLE_STYLE,
        convert_image=mammoth.images.img_element(lambda _: {}),  # images have no text; skip their bytes
    ).value
    text, heading = html_text(markup)
    return [Document(name, text, title=core_title(archive) or heading)]


def _with_formulas_as_text(archive: zipfile.ZipFile, body: bytes) -> bytes:
    """Formulas become runs of their characters; Mammoth (1.13) would leave them out."""
    main = archive.read(MAIN_PART) if MAIN_PART in archive.NameToInfo else b""
    if b"oMath" not in main:
        return body
    root = etree.fromstring(main, parse_xml_safely())
    for formula in list(root.iter(f"{MATH}oMath")):
        run = etree.Element(f"{WORD}r")
        etree.SubElement(run, f"{WORD}t").text = "".join(formula.itertext(f"{MATH}t"))
        run.tail = formula.tail
        formula.getparent().replace(formula, run)
    for wrapper in list(root.iter(f"{MATH}oMathPara")):
        wrapper.getparent().replace(wrapper, wrapper[-1])
    return _with_member(archive, MAIN_PART, etree.tostring(root))


def _with_member(archive: zipfile.ZipFile, name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as changed:
        for member in archive.namelist():
            changed.writestr(member, content if member == name else archive.read(member))
    return buffer.getvalue()


def core_title(archive: zipfile.ZipFile) -> str | None:
    """The title in an Office file's properties."""
    if CORE_PROPERTIES not in archive.namelist():
        return None
    root = etree.fromstring(archive.read(CORE_PROPERTIES), parse_xml_safely())
    return " ".join((root.findtext(DUBLIN_CORE_TITLE) or "").split()) or None


def parse_xml_safely() -> etree.XMLParser:
    """A parser that expands no entities and opens no files."""
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
