"""Where a text may be cut, and how good each place is.

Rules for sentence ends follow Unicode Standard Annex #29, section 5 (SB6-SB11), simplified: the terminators
of many scripts, closing punctuation stays with its sentence, and a full stop ends none before a lower-case
letter, after an initial or after a common abbreviation. Grapheme clusters (section 3 there) are kept whole.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import regex
from numpy.typing import NDArray

from app.engine.tokenizer import Tokens

Positions = NDArray[np.int64]
LAST_OF_TABLES = 0xFFFF
"""No character; it stands for all code points beyond the tables."""


def _table(characters: Iterable[str]) -> NDArray[np.bool_]:
    """Whether each code point up to LAST_OF_TABLES is one of them; looking up costs a tenth of `np.isin`."""
    table = np.zeros(LAST_OF_TABLES + 1, dtype=np.bool_)
    table[[ord(character) for character in characters]] = True
    return table


NOWHERE: Final = -2
INSIDE_GRAPHEME: Final = -1
"""Cuts a combining sequence or an emoji; only where nothing else is left."""
TOKEN: Final = 0
WORD: Final = 1
LINE: Final = 2
SENTENCE: Final = 3
PARAGRAPH: Final = 4
"""After a blank line."""
END: Final = 5

SENTENCE_END = re.compile(
    r"[.!?…؟۔।॥။።፧፨։།។。！？｡．]+[\"'”’»›)\]}」』）】》〉*_]*\s*"
)  # consumes, so linear
UNSPACED = frozenset("。！？｡．")
"""Terminators of scripts that put no space after a sentence."""
STOPS = frozenset(".…")
"""Terminators that also abbreviate or go on."""
ABBREVIATIONS = re.compile(
    "dr|mr|mrs|ms|prof|st|jr|sr|vs|etc|figs?|eqs?|no|nos|vol|pp?|eds?|inc|ltd|co|corp|dept|al|cf|approx|ca"
    "|bzw|nr|bd|hrsg|bsp|usw|evtl|vgl|sog|art|abs|mme|mlle|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
    "|[a-z]([.][a-z])+",
    re.IGNORECASE,
)
CLAUSE_MARKS = _table("、，；：،؛")
"""After these a script without spaces may be cut as between words."""
HEADING_CHARS = 100
"""A lone line up to this long that ends no sentence is taken for a heading and kept with what follows."""
WHITE_SPACE = _table(chr(point) for point in range(0x3001) if chr(point).isspace())
NEWLINES = _table("\n\v\f\x85\u2028\u2029")

JOINING = r"\p{GCB=EX}\p{GCB=SM}\p{GCB=PP}\p{GCB=ZWJ}\p{GCB=RI}\p{GCB=L}\p{GCB=V}\p{GCB=T}"
"""Only beside characters of these grapheme cluster break classes can a cluster have several code points."""
JOINED_STRETCH = regex.compile(rf"(?s)(?:[^{JOINING}]?+[{JOINING}]++)++[^{JOINING}]?+")
GRAPHEME = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class Borders:
    """Places where a text may be cut, ascending; the last is the end of the text."""

    positions: Positions  # (b,), code points
    n_before: Positions  # (b,), tokens that start before each position
    levels: NDArray[np.int8]  # (b,), INSIDE_GRAPHEME ... END
    visible: Positions  # positions of all characters that are not white space
    token_starts: Positions  # (t,)

    def tokens_before(self, position: int) -> int:
        return int(np.searchsorted(self.token_starts, position))

    def first_visible(self, position: int) -> int | None:
        """The first character at or after `position` that is not white space."""
        i = int(np.searchsorted(self.visible, position))
        return int(self.visible[i]) if i < len(self.visible) else None

    def trimmed(self, end: int) -> int:
        """The end without the white space before it."""
        return int(self.visible[np.searchsorted(self.visible, end) - 1]) + 1


def find_borders(text: str, tokens: Tokens, *, page_starts: tuple[int, ...] = (), max_chars: int) -> Borders:
    """Find all borders of a text; between neighbours lie at most `max_chars` characters.

    Time and memory are linear in the text. `max_chars` matters where one token stands for a very long word.
    """
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)  # (n,)
    points = np.minimum(points, LAST_OF_TABLES)
    blank = WHITE_SPACE[points]
    visible = np.flatnonzero(~blank)
    newlines_between = np.diff(_newlines_before(points)[visible], prepend=0)  # (v,), before each visible one
    paragraphs = visible[newlines_between >= 2]
    starts: dict[int, Positions] = {  # by level; a later one counts where several are the same place
        TOKEN: tokens.starts.astype(np.int64),
        LINE: np.concatenate([visible[newlines_between == 1], _inner(page_starts, len(text))]),
        SENTENCE: sentence_starts(text),
        PARAGRAPH: paragraphs,
    }
    level_at = np.full(len(text) + 1, NOWHERE, dtype=np.int8)
    for level, places in starts.items():
        level_at[places] = level
    level_at[_after_headings(text, paragraphs)] = LINE
    between_words = blank[1:] | blank[:-1] | CLAUSE_MARKS[points[:-1]]
    level_at[1:-1][between_words & (level_at[1:-1] == TOKEN)] = WORD
    level_at[_inside_graphemes(text)] = INSIDE_GRAPHEME
    level_at[-1] = END

    positions = np.flatnonzero(level_at[1:] != NOWHERE) + 1
    positions = _subdivide(_outside_tokens(positions, tokens), max_chars)
    levels = np.maximum(level_at[positions], INSIDE_GRAPHEME)
    token_starts = tokens.starts.astype(
        np.int64
    )  # as the other positions: mixed types cost a copy per search
    return Borders(positions, np.searchsorted(token_starts, positions), levels, visible, token_starts)


def _newlines_before(points: NDArray[np.uint32]) -> Positions:
    """Line ends before each position, (n + 1,). A carriage return with its line feed is one."""
    ends = NEWLINES[points]
    lone = points == ord("\r")
    lone[:-1] &= points[1:] != ord("\n")
    return np.concatenate([[0], np.cumsum(ends | lone)]).astype(np.int64)


def _inner(page_starts: tuple[int, ...], n: int) -> Positions:
    return np.array([p for p in page_starts if 0 < p < n], dtype=np.int64)


def sentence_starts(text: str) -> Positions:
    """Where a sentence begins, without the first."""
    ends = (m for m in SENTENCE_END.finditer(text) if m.end() < len(text) and _ends_sentence(text, m))
    return np.array([m.end() for m in ends], dtype=np.int64)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark, following = text[match.start()], text[match.end()]
    if mark in UNSPACED:
        return True
    if not match.group()[-1].isspace() or following.islower():
        return False
    return mark not in STOPS or not _abbreviates(text, match.start())


def _abbreviates(text: str, stop: int) -> bool:
    """Whether the full stop at `stop` belongs to an initial, an abbreviation or a list number."""
    if text[stop : stop + 2] == "..":
        return False
    before = text[max(0, stop - 12) : stop]
    word = re.split(r"[\s(\[\"'“]", before)[-1]
    if word.isdigit():
        return len(word) <= 3 and before[: -len(word)].rstrip(" \t")[-1:] in ("", "\n", "\r")
    return (len(word) == 1 and word.isupper()) or ABBREVIATIONS.fullmatch(word) is not None


def _after_headings(text: str, paragraph_starts: Positions) -> Positions:
    """Those paragraph starts that follow a paragraph which looks like a heading."""
    begins = [0, *paragraph_starts.tolist()]
    return np.array(
        [end for start, end in pairwise(begins) if _is_heading(text, start, end)],
        dtype=np.int64,
    )


def _is_heading(text: str, start: int, end: int) -> bool:
    if end - start > 2 * HEADING_CHARS:
        return False
    paragraph = text[start:end].strip()
    is_line = 0 < len(paragraph) <= HEADING_CHARS and len(paragraph.splitlines()) == 1
    return is_line and SENTENCE_END.search(paragraph[-2:]) is None


def _outside_tokens(positions: Positions, tokens: Tokens) -> Positions:
    """Those positions that no token reaches over."""
    reach = np.concatenate([[0], np.maximum.accumulate(tokens.ends)])  # (t + 1,)
    return positions[reach[np.searchsorted(tokens.starts, positions)] <= positions]


def _subdivide(positions: Positions, max_chars: int) -> Positions:
    """Add positions so that no two neighbours are further apart than `max_chars`, in equal steps."""
    gaps = np.diff(positions, prepend=0)
    added = [
        np.linspace(positions[i] - gaps[i], positions[i], -(-gaps[i] // max_chars) + 1)[1:-1].astype(np.int64)
        for i in np.flatnonzero(gaps > max_chars)
    ]
    return np.sort(np.concatenate([positions, *added]))


def _inside_graphemes(text: str) -> list[int]:
    """Places between code points of one extended grapheme cluster."""
    if text.isascii():
        return []
    return [
        place
        for stretch in JOINED_STRETCH.finditer(text)
        for cluster in GRAPHEME.finditer(text, stretch.start(), stretch.end())
        for place in range(cluster.start() + 1, cluster.end())
    ]
