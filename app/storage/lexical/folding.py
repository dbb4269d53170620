"""One spelling for what readers take for the same letters: accents, widths, ligatures, invisible marks."""

import unicodedata

import regex

INVISIBLE = regex.compile(r"[[\p{Cf}\p{Variation_Selector}\u0640]--[\u200b]]", flags=regex.VERSION1)
"""Soft hyphens, joiners, bidirectional marks, the BOM, and the Arabic stroke that only stretches a word.

The zero-width space stays: Thai and Khmer texts put it between words.
"""

OPTIONAL_MARKS = regex.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u06d6-\u06ed]")
"""Accents, and the vowel points of Hebrew and Arabic. Indic and Thai vowel signs are as good as letters."""

LETTERS = str.maketrans(
    {
        "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th",
        "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h", "Ħ": "H",
        "ı": "i", "ŧ": "t", "Ŧ": "T", "ŋ": "n", "Ŋ": "N",
        "’": "'", "ʼ": "'", "‘": "'", "‐": "-", "\u200b": " ",
    }
)  # fmt: skip
"""What canonical decomposition leaves alone. The dotless i too: ISPARTA, Isparta and ısparta are one word."""


def fold(text: str) -> str:
    """Fold everything but case, which still tells the parts of an identifier apart.

    >>> fold("Café"), fold("ＡＢＣ"), fold("İstanbul"), fold("co\\u00adoperate"), fold("がく")
    ('Cafe', 'ABC', 'Istanbul', 'cooperate', 'がく')
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", INVISIBLE.sub("", text))
    return unicodedata.normalize("NFC", OPTIONAL_MARKS.sub("", decomposed).translate(LETTERS))
