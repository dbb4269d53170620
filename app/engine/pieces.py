"""What a model reads of a text or of a pair of texts, token by token."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import tokenizers
from numpy.typing import NDArray

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Tokens in order, special tokens included; every array is (t,).

    `texts[text[i]][starts[i]:ends[i]]` is what token i stands for, of the texts (first, second).
    """

    tokens: NDArray[np.object_]
    """As written in the vocabulary: WordPiece marks with ## what goes on within a word."""
    ids: Ids
    starts: Ids
    ends: Ids
    text: Ids
    """0 for the first text, 1 for the second, -1 for a special token."""
    words: Ids
    """0-based number of the word within its text; -1 for a special token."""
    segments: Ids
    """The model's token type: which segment embedding is added."""
    unknown: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def special(self) -> NDArray[np.bool_]:
        return self.text < 0

    @property
    def unknown_share(self) -> float:
        """Of the tokens that are not special, 0..1."""
        ordinary = self.unknown[~self.special]
        return float(ordinary.mean()) if len(ordinary) else 0.0

    @property
    def pieces_per_word(self) -> float:
        """1 where every word is in the vocabulary; 0 without words."""
        n_words = sum(len(np.unique(self.words[self.text == text])) for text in (0, 1))
        return float((~self.special).sum() / n_words) if n_words else 0.0

    def cut(self, max_tokens: int) -> Self:
        """At most max_tokens of them: the second text loses its end first, special tokens stay."""
        expendable = np.concatenate([np.flatnonzero(self.text == text)[::-1] for text in (1, 0)])
        excess = max(0, len(self) - max_tokens)
        is_kept = np.ones(len(self), dtype=np.bool_)
        is_kept[expendable[:excess]] = False
        return self._those(is_kept)

    def ordinary(self) -> Self:
        """Without special tokens."""
        return self._those(~self.special)

    def _those(self, is_kept: NDArray[np.bool_]) -> Self:
        return type(self)(**{field.name: getattr(self, field.name)[is_kept] for field in fields(self)})


def read_encoding(encoding: tokenizers.Encoding, *, unknown: NDArray[np.bool_]) -> Pieces:
    offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
    return Pieces(
        tokens=np.array(encoding.tokens, dtype=np.object_),
        ids=np.array(encoding.ids, dtype=np.int32),
        starts=offsets[:, 0],
        ends=offsets[:, 1],
        text=_numbers(encoding.sequence_ids),
        words=_numbers(encoding.word_ids),
        segments=np.array(encoding.type_ids, dtype=np.int32),
        unknown=unknown,
    )


def _numbers(values: list[int | None]) -> Ids:
    return np.array([-1 if value is None else value for value in values], dtype=np.int32)
