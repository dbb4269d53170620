"""Words as people write them, out of those of the tokenizer, which end at every punctuation mark.

Taggers are trained on data in which `U.S.`, `1995-96` and `AT&T` are one word each and have one tag, at their
first piece (Tjong Kim Sang and De Meulder 2003; Devlin et al. 2019, section 5.3). What such a model says at
the pieces behind was never taught, and must not count.
"""

import re
from collections.abc import Sequence

import numpy as np

from app.engine.pieces import Ids

JOINERS = frozenset(".-'’&/@_+*#")
"""Between letters or digits, without a space, they are within a word."""
DIGIT_JOINERS = frozenset(",:")
"""Between digits."""
APOSTROPHES = frozenset("'’")
CLITICS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})
"""Behind an apostrophe a word of its own, as in that data: `Merkel's` is two."""
TITLES = frozenset({"capt", "col", "dr", "ft", "gen", "gov", "hon", "jr", "lt", "mr", "mrs", "ms", "mt"})
TITLES |= {"prof", "rep", "rev", "sen", "sgt", "sr", "st"}
"""Of people and places: their full stop ends no sentence, whatever follows."""
FOLLOWS = re.compile(r"\s*(\S)")


def whole_words(text: str, words: Ids, starts: Ids, ends: Ids) -> Ids:
    """Number of the whole word of each token (t,), of which `words` has the number of the tokenizer's word.

    A full stop belongs to the word before it if that is an initial or an acronym, a title, or if the sentence
    goes on: with a small letter or a comma.

    >>> text = "U.S.-led AT&T met St. Gallen's Co. in 1995-96, 3,000 times."
    >>> spans = np.array([match.span() for match in re.finditer(r"\\w+|[^\\w\\s]", text)], np.int32)
    >>> numbers = whole_words(text, np.arange(len(spans)), spans[:, 0], spans[:, 1])
    >>> [text[of[0, 0] : of[-1, 1]] for n in range(numbers[-1] + 1) for of in [spans[numbers == n]]]
    ['U.S.-led', 'AT&T', 'met', 'St.', 'Gallen', "'s", 'Co.', 'in', '1995-96', ',', '3,000', 'times', '.']
    """
    begins = np.diff(words, prepend=-1) != 0  # (t,), at the first token of each word
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts, len(words))[1:] - 1
    line = _Line(text, starts[firsts].tolist(), ends[lasts].tolist())
    begins_whole = np.zeros(len(firsts), dtype=np.int32)
    place = 0
    while place < len(firsts):
        begins_whole[place] = 1
        place = line.end_of_word(place)
    of_words = np.cumsum(begins_whole, dtype=np.int32) - 1
    numbers: Ids = of_words[np.cumsum(begins) - 1]
    return numbers


class _Line:
    """The tokenizer's words of a text, by place."""

    def __init__(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        self._text = text
        self._ends = ends
        self._words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        self._touches = [*(end == start for end, start in zip(ends, starts[1:], strict=False)), False]
        """Whether nothing is between a word and the next one."""

    def end_of_word(self, first: int) -> int:
        """Place behind the whole word that begins at `first`."""
        if not self._words[first][:1].isalnum():
            return first + 1 + self._is_clitic(first)
        last = first
        is_acronym = self._is_letter(first)
        while True:
            if self._is_joined(last):
                is_acronym = is_acronym and self._words[last + 1] == "." and self._is_letter(last + 2)
                last += 2
            elif self._has_stop(last) and (is_acronym or self._is_abbreviated(first, last)):
                last += 1
                if not self._is_joined_behind(last):
                    return last + 1
                is_acronym = False
                last += 2
            else:
                return last + 1

    def _is_joined(self, last: int) -> bool:
        """Whether the next but one goes on with the same word."""
        if not self._is_joined_behind(last):
            return False
        before, mark, after = self._words[last : last + 3]
        return mark in JOINERS or (before[-1:].isdigit() and after[0].isdigit())

    def _is_joined_behind(self, last: int) -> bool:
        """Whether a mark and a word follow without a space."""
        if last + 2 >= len(self._words) or not (self._touches[last] and self._touches[last + 1]):
            return False
        mark, after = self._words[last + 1 : last + 3]
        return mark in JOINERS | DIGIT_JOINERS and after[:1].isalnum() and not self._is_clitic(last + 1)

    def _has_stop(self, last: int) -> bool:
        return self._touches[last] and self._words[last + 1] == "."

    def _is_abbreviated(self, first: int, last: int) -> bool:
        """Whether the full stop behind the word is one of an abbreviation."""
        if first == last and self._words[last].lower() in TITLES:
            return True
        follows = FOLLOWS.match(self._text, self._ends[last + 1])
        goes_on = follows is not None and (follows[1].islower() or follows[1] == ",")
        return goes_on and not self._words[last][-1:].isdigit()

    def _is_clitic(self, place: int) -> bool:
        """Whether it is the apostrophe of one, which makes a word with what is behind it."""
        return (
            place > 0
            and self._words[place] in APOSTROPHES
            and self._touches[place - 1]
            and self._touches[place]
            and self._words[place + 1].lower() in CLITICS
        )

    def _is_letter(self, place: int) -> bool:
        return len(self._words[place]) == 1 and self._words[place].isalpha()
