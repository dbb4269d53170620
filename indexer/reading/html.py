"""Web pages into text: what a reader sees of the main part, blocks on lines of their own."""

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.domain import Document
from app.errors import BadFile
from indexer.reading.text import decode

DECLARED_ENCODING = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE
)
HIDDEN = re.compile(
    "script|style|noscript|template|svg|nav|iframe|object|canvas|head|select|textarea|button|dialog"
)
PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|body|details|dl|fieldset|figure|footer|form|h[1-6]|header|hr|main|ol|p|pre"
    "|section|table|ul"
)
"""Stand between blank lines."""
LINES = re.compile("br|caption|dd|div|dt|figcaption|legend|li|option|summary|tr")
"""Stand on lines of their own."""
CELLS = ("td", "th")
CELL_GAP = " | "
MAX_DEPTH = 5_000
"""Of nested elements; real pages stay below 100."""
MAX_UNCLOSED = 20_000
"""The parser's time grows with the square of the depth: 2.6 s for this, minutes for 200,000. Careless pages
leave out end tags without nesting anything, but not so many."""
NESTING = re.compile(
    r"<(/?)(?:div|span|section|article|main|aside|header|footer|nav|blockquote|figure|details|form|center|font"
    r"|ul|ol|dl|table|b|i|u|em|strong|small|big|tt|code|object)(?=[\s/>])",
    re.IGNORECASE,
)


def read_html(name: str, body: bytes) -> list[Document]:
    """The page's one `main` element if it has one, else its body, without navigation and scripts."""
    declared = DECLARED_ENCODING.search(body[:4096])
    text, title = html_text(
        decode(body, declared=declared[1].decode("ascii", "ignore") if declared else None)
    )
    return [Document(name, text, title=title)]


def html_text(markup: str) -> tuple[str, str | None]:
    """Visible text; and the title, from the `title` element or else the first heading.

    Raises:
        BadFile: nested deeper than MAX_DEPTH.
    """
    _check_end_tags(markup)
    tree = LexborHTMLParser(markup)
    mains = tree.css("main, [role=main]")
    root = mains[0] if len(mains) == 1 and mains[0].child is not None else tree.body
    titles = (" ".join(node.text().split()) for node in tree.css("head > title, h1"))
    return _visible_text(root) if root is not None else "", next((t for t in titles if t), None)


def _check_end_tags(markup: str) -> None:
    """Before parsing. Raises BadFile."""
    n_open = 0
    for tag in NESTING.finditer(markup):
        n_open = max(0, n_open + (-1 if tag[1] else 1))
        if n_open > MAX_UNCLOSED:
            raise BadFile(f"elements are nested more than {MAX_DEPTH} deep")


def _visible_text(root: LexborNode) -> str:
    """Walks without recursion, as a page may be nested to any depth.

    Raises:
        BadFile: nested deeper than MAX_DEPTH.
    """
    writer = _Writer()
    node, depth = root, 0
    while True:
        if not _is_hidden(node):
            writer.open(node)
            if node.child is not None:
                node, depth = node.child, depth + 1
                if depth > MAX_DEPTH:
                    raise BadFile(f"elements are nested more than {MAX_DEPTH} deep")
                continue
            writer.close(node)
        while depth and node.next is None:
            node, depth = _parent(node), depth - 1
            writer.close(node)
        if not depth or node.next is None:
            return writer.text()
        node = node.next


def _parent(node: LexborNode) -> LexborNode:
    assert node.parent is not None
    return node.parent


def _tag(node: LexborNode) -> str:
    return node.tag or ""


def _is_hidden(node: LexborNode) -> bool:
    if node.is_text_node:
        return False
    if not node.is_element_node or HIDDEN.fullmatch(_tag(node)):
        return True
    attributes = node.attributes
    return "hidden" in attributes or attributes.get("aria-hidden") == "true"


class _Writer:
    """Collects text, with white space collapsed as a browser does it except inside `pre`."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._gap = ""
        self._n_open_pre = 0
        self._is_at_cell_start = False

    def open(self, node: LexborNode) -> None:
        if node.is_text_node:
            self._write(node.text_content or "")
            return
        self._break(node)
        self._n_open_pre += node.tag == "pre"
        self._is_at_cell_start |= node.tag in CELLS

    def close(self, node: LexborNode) -> None:
        if node.is_text_node:
            return
        self._n_open_pre -= node.tag == "pre"
        self._break(node)
        if node.tag in CELLS:
            self._gap = self._gap if self._is_at_cell_start else CELL_GAP
            self._is_at_cell_start = False

    def text(self) -> str:
        return "".join(self._parts)

    def _break(self, node: LexborNode) -> None:
        """Except around the first and last block of a cell, which stands beside the next cell."""
        if self._is_at_cell_start:
            return
        if PARAGRAPHS.fullmatch(_tag(node)):
            self._widen("\n\n")
        elif LINES.fullmatch(_tag(node)):
            self._widen("\n")

    def _widen(self, gap: str) -> None:
        """A line break replaces spaces and cell gaps, a blank line replaces a line break."""
        rank = ["", " ", CELL_GAP, "\n", "\n\n"]
        self._gap = max(self._gap, gap, key=rank.index)

    def _write(self, text: str) -> None:
        words = text if self._n_open_pre else " ".join(text.split())
        if not words.strip():
            if text:
                self._widen(" ")
            return
        self._is_at_cell_start = False
        if not self._n_open_pre and text[0].isspace():
            self._widen(" ")
        if self._parts:
            self._parts.append(self._gap)
        self._parts.append(words.strip("\n") if self._n_open_pre else words)
        self._gap = " " if text[-1].isspace() else ""
