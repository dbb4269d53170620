"""Documents into passages: slices of the stored text that fit the encoder and read well as quotes."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from app.domain import Document, Passage, SplitterSettings
from app.engine.tokenizer import Tokenizer, Tokens, title_limit
from indexer.borders import INSIDE_GRAPHEME, LINE, PARAGRAPH, SENTENCE, TOKEN, WORD, Borders, find_borders

CHARS_PER_TOKEN = 16
"""A passage has at most this many characters per token of its limit. Prose has 4 to 5; one unknown word or an
aligned table may have thousands, and a hit must stay a quote."""
MIN_MAX_TOKENS = 16
"""Below this, special tokens and a title leave too little room for any text."""
PREFERENCES = (
    (PARAGRAPH, 0.5),
    (SENTENCE, 0.25),
    (LINE, 0.25),
    (WORD, 0.0),
    (TOKEN, 0.0),
    (INSIDE_GRAPHEME, 0.0),
)
"""Kinds of border, best first, with how full a passage must be to be ended there."""
SPACES = " \n"
"""Across which no token reaches; see `Tokenizer.splits_at_spaces`."""
BALANCE_BELOW = 1.25
"""What is left at the end and exceeds a passage by up to this factor becomes two of similar size."""


def split(
    document: Document, tokens: Tokens, *, tokenizer: Tokenizer, settings: SplitterSettings, max_tokens: int
) -> list[Passage]:
    """Cut a document into passages, in order; none for a text of white space only.

    - Every character that is not white space lies in at least one passage; ends are trimmed of white space.
    - A passage with special tokens and title has at most min(settings.max_tokens, max_tokens) tokens, counted
      on the slice itself; a title counts with at most a quarter of that here, although the encoder reads up
      to a quarter of its own limit, which `n_tokens` has. Passages are filled greedily with whole sentences,
      ended at the best border of `PREFERENCES`.
    - A passage repeats up to settings.overlap_tokens of the one before it, as whole sentences or else words,
      unless a paragraph ended there.

    Time is linear in the text.

    Args:
        tokens: of `document.text`, from `tokenizer`.
        max_tokens: the encoder's limit, special tokens included.

    Raises:
        ValueError: a limit below MIN_MAX_TOKENS.
    """
    limit = min(settings.max_tokens, max_tokens)
    if limit < MIN_MAX_TOKENS:
        raise ValueError(f"passages of {limit} tokens are too short; at least {MIN_MAX_TOKENS} are needed")
    n_title = tokenizer.count(document.title) if document.title else 0
    n_around = tokenizer.n_special + min(n_title, title_limit(limit))
    n_read_around = tokenizer.n_special + min(n_title, title_limit(max_tokens))
    max_chars = CHARS_PER_TOKEN * limit
    packer = _Packer(
        document.text,
        find_borders(document.text, tokens, page_starts=document.page_starts, max_chars=max_chars // 2),
        tokenizer,
        max_tokens=limit - n_around,
        max_chars=max_chars,
        overlap_tokens=settings.overlap_tokens,
    )
    return [
        Passage(start, end, n_read_around + n_tokens, _page(document.page_starts, start))
        for start, end, n_tokens in packer.slices()
    ]


def _page(page_starts: tuple[int, ...], start: int) -> int | None:
    return max(1, bisect_right(page_starts, start)) if page_starts else None


@dataclass(frozen=True, slots=True)
class _Packer:
    """Fills passages with the stretches between borders. Token limits here are for the text alone."""

    text: str
    borders: Borders
    tokenizer: Tokenizer
    max_tokens: int
    max_chars: int
    overlap_tokens: int

    def slices(self) -> list[tuple[int, int, int]]:
        """(start, end, tokens) of each passage."""
        found: list[tuple[int, int, int]] = []
        covered = 0
        while (resume := self.borders.first_visible(covered)) is not None:
            start = self._overlap_start(covered, found[-1][0]) if found else None
            start = resume if start is None else start
            fitting = self._fitting_cut(start, resume) or self._fitting_cut(resume, resume)
            if fitting is None:
                fitting = self._shortened_cut(resume)
            start, covered, n_tokens = fitting
            found.append((start, self.borders.trimmed(covered), n_tokens))
        return found

    def _overlap_start(self, cut: int, previous_start: int) -> int | None:
        """Where the passage that goes on at `cut` begins to repeat the one before it, if it does."""
        borders = self.borders
        first, here = np.searchsorted(borders.positions, [previous_start + 1, cut])
        level = borders.levels[here]
        if borders.positions[here] != cut or level >= PARAGRAPH or level < TOKEN:
            return None
        earlier = borders.positions[first:here]
        allowed = borders.n_before[first:here] >= self._fewest_tokens_before_overlap(cut)
        allowed &= earlier >= cut - self.max_chars // 8
        for wanted in (SENTENCE, LINE, WORD, TOKEN):
            starts = earlier[allowed & (borders.levels[first:here] >= wanted)]
            if wanted >= level and len(starts):
                return borders.first_visible(int(starts[0]))
        return None

    def _fewest_tokens_before_overlap(self, cut: int) -> int:
        """An overlap is short, and leaves room to reach a sentence end that is in reach without it."""
        borders = self.borders
        fewest = borders.tokens_before(cut) - min(self.overlap_tokens, self.max_tokens // 2)
        reach = self._reach(cut, cut, self.max_tokens)
        ends = np.flatnonzero(borders.levels[reach] >= SENTENCE)
        if len(ends):
            fewest = max(fewest, int(borders.n_before[reach][ends[0]]) - self.max_tokens)
        return fewest

    def _reach(self, start: int, after: int, max_tokens: float) -> slice:
        """Borders beyond `after` that fit into a passage from `start`, and at least one."""
        borders = self.borders
        low = int(np.searchsorted(borders.positions, after, side="right"))
        n_max = borders.tokens_before(start) + max_tokens
        by_tokens = int(np.searchsorted(borders.n_before, n_max, side="right"))
        by_chars = int(np.searchsorted(borders.positions, start + self.max_chars, side="right"))
        return slice(low, max(min(by_tokens, by_chars), low + 1))

    def _fitting_cut(self, start: int, after: int) -> tuple[int, int, int] | None:
        """(start, cut, tokens) of the best slice that ends beyond `after`; None if none fits.

        A slice can have more tokens than its stretch of the whole text where a cut goes through a word.
        """
        room = self._room(start)
        while True:
            reach = self._reach(start, after, room)
            cut = self._best_cut(reach, start, room)
            n_tokens = self._n_tokens(start, self.borders.trimmed(cut))
            if n_tokens <= self.max_tokens:
                return start, cut, n_tokens
            if reach.stop - reach.start == 1:
                return None
            room -= n_tokens - self.max_tokens

    def _n_tokens(self, start: int, end: int) -> int:
        """Of a slice. Where both ends are between words, it has the tokens of its stretch of the text."""
        if self.tokenizer.splits_at_spaces and self._is_at_space(start) and self._is_at_space(end):
            return self.borders.tokens_before(end) - self.borders.tokens_before(start)
        return self.tokenizer.count(self.text[start:end])

    def _is_at_space(self, place: int) -> bool:
        if place in (0, len(self.text)):
            return True
        return self.text[place - 1] in SPACES or self.text[place] in SPACES

    def _room(self, start: int) -> int:
        """Tokens that the passage from `start` may take; less than the limit to balance the last two."""
        left = len(self.borders.token_starts) - self.borders.tokens_before(start)
        if self.max_tokens < left <= BALANCE_BELOW * self.max_tokens:
            return int(0.6 * left)
        return self.max_tokens

    def _best_cut(self, reach: slice, start: int, room: int) -> int:
        borders = self.borders
        positions, levels = borders.positions[reach], borders.levels[reach]
        tokens_share = (borders.n_before[reach] - borders.tokens_before(start)) / max(room, 1)
        fullness = np.maximum(tokens_share, (positions - start) / self.max_chars)
        for wanted, min_fullness in PREFERENCES:
            good = positions[(levels >= wanted) & (fullness >= min_fullness)]
            if len(good):
                return int(good[-1])
        return int(positions[-1])

    def _shortened_cut(self, start: int) -> tuple[int, int, int]:
        """A cut where not even the text up to the next border fits: halve until it does."""
        cut = int(self.borders.positions[self._reach(start, start, 0).start])
        while True:
            cut = start + max(1, (cut - start) // 2)
            n_tokens = self.tokenizer.count(self.text[start:cut])
            if n_tokens <= self.max_tokens or cut == start + 1:
                return start, cut, n_tokens
