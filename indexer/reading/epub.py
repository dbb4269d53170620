"""E-books into text: the chapters in reading order (EPUB 3.3, section 5: container, package, spine)."""

import posixpath
import urllib.parse
import zipfile
from typing import Any

from lxml import etree

from app.domain import Document
from app.errors import BadFile
from indexer.reading.archives import checked_archive
from indexer.reading.docx import parse_xml_safely
from indexer.reading.html import html_text
from indexer.reading.text import decode

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"


def read_epub(name: str, body: bytes) -> list[Document]:
    archive = checked_archive(body)
    [root_file, *_] = _xml(archive, CONTAINER).xpath("//*[local-name()='rootfile']/@full-path")
    package = _xml(archive, root_file)
    titles = package.xpath("//*[local-name()='metadata']/*[local-name()='title']/text()")
    paths = _spine(package, posixpath.dirname(root_file))
    chapters = [html_text(decode(archive.read(path)))[0] for path in paths if path in archive.NameToInfo]
    text = "\n\n".join(chapter for chapter in chapters if chapter)
    if not text and ENCRYPTION in archive.NameToInfo:
        raise BadFile("it is protected by digital rights management")
    return [Document(name, text, title=next((t for title in titles if (t := " ".join(title.split()))), None))]


def _xml(archive: zipfile.ZipFile, path: str) -> Any:
    return etree.fromstring(archive.read(path), parse_xml_safely())


def _spine(package: Any, folder: str) -> list[str]:
    """Paths of the chapters in reading order, without the table of contents."""
    entries = {entry.get("id"): entry for entry in package.xpath("//*[local-name()='manifest']/*")}
    references = package.xpath("//*[local-name()='spine']/*/@idref")
    chapters = [entries[r] for r in references if r in entries]
    return [
        posixpath.normpath(posixpath.join(folder, urllib.parse.unquote(chapter.get("href", ""))))
        for chapter in chapters
        if "html" in chapter.get("media-type", "") and "nav" not in chapter.get("properties", "").split()
    ]
