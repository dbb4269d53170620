"""Bytes into text: encodings, line ends, plain text and Markdown."""

import codecs
import datetime as dt
import re
from typing import Any

import charset_normalizer
import yaml

from app.domain import Document, MetadataScalar
from app.errors import BadFile

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark begins it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
DETECTION_BYTES = 200_000
"""Detection of the encoding looks at this much; it is slow and more tells it nothing."""
FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
FENCE_OR_HEADING = re.compile(
    r"^ {0,3}(?:(?P<fence>```+|~~~+)|#{1,6}[ \t]+(?P<heading>[^\n]+))", re.MULTILINE
)


def decode(body: bytes, *, declared: str | None = None) -> str:
    """Decode with the encoding that a byte order mark tells, or UTF-8, or `declared`, or the likeliest.

    The mark is removed and line ends become `\\n`.

    Raises:
        BadFile: the bytes are no text in any encoding that can be told.
    """
    return re.sub(r"\r\n?", "\n", _decoded(body, declared))


def _decoded(body: bytes, declared: str | None) -> str:
    for mark, encoding in BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace")
    for candidate in ("utf-8", declared or "utf-8"):
        try:
            text = body.decode(candidate)
        except (UnicodeError, LookupError):
            continue
        if "\0" not in text:
            return text
    return _guessed(body)


def _guessed(body: bytes) -> str:
    if b"\0" in body:
        raise BadFile("this is not text but binary data; allowed is text in UTF-8 or another known encoding")
    best = charset_normalizer.from_bytes(body[:DETECTION_BYTES]).best()
    if best is None:
        raise BadFile("the encoding of this text cannot be told; save it as UTF-8")
    return body.decode(best.encoding, "replace")


def read_text(name: str, body: bytes) -> list[Document]:
    return [Document(name, decode(body))]


def read_markdown(name: str, body: bytes) -> list[Document]:
    """The Markdown as it is, except a YAML front matter, which becomes metadata.

    The title is the one of the front matter, or else the first heading.
    """
    text = decode(body)
    front: dict[str, Any] = {}
    if (match := FRONT_MATTER.match(text)) and (front := _front_matter(match[1])):
        text = text[match.end() :]
    title = front.pop("title", None)
    metadata = {str(key): plain for key, value in front.items() if (plain := _plain(value)) is not None}
    return [Document(name, text, title=str(title) if title else first_heading(text), metadata=metadata)]


def first_heading(markdown: str) -> str | None:
    """Text of the first heading that is not inside a fenced block."""
    fence = ""
    for match in FENCE_OR_HEADING.finditer(markdown):
        if match["fence"]:
            if not fence:
                fence = match["fence"]
            elif match["fence"].startswith(fence):
                fence = ""
        elif not fence:
            return re.sub(r"\s+#+\s*$|\s*\{[^{}]*\}\s*$", "", match["heading"]).strip() or None
    return None


def _front_matter(block: str) -> dict[str, Any]:
    """Empty where the block is no mapping: then it is text between two rules."""
    try:
        loaded = yaml.safe_load(block)
    except (yaml.YAMLError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _plain(value: object) -> MetadataScalar | list[MetadataScalar] | None:
    """The value as metadata; None for what metadata cannot hold."""
    if isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    if isinstance(value, list) and all(isinstance(v, (str, int, float, bool)) for v in value):
        return list(value)
    return None
