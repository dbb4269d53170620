"""Text to token ids with offsets: the one owner of a model's tokenizer.

Truncation and padding are switched off once, at construction, and never touched again. Changing them per
call is what makes fast tokenizers fail under threads ("Already borrowed"); and what is cut, and where, must
be known to the caller, so cutting happens outside, on the arrays returned here.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from app.engine.pieces import Ids, Pieces, read_encoding

__all__ = ["SECTION_CHARS", "Ids", "Tokenizer", "Tokens", "title_limit"]

LONE_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"
"""One code point for one code point, so offsets stay right; BERT's normaliser drops it."""

SECTION_CHARS = 65_536
"""A text is tokenised in sections of about this length: as a whole, 10 million characters take 1.6 GB."""
SECTION_BORDER = re.compile("[ \n]")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text in order, un-truncated, without special tokens.

    `text[starts[i]:ends[i]]` is what token i stands for; offsets are half-open and count code points.
    """

    ids: Ids  # (t,)
    starts: NDArray[np.int32]  # (t,)
    ends: NDArray[np.int32]  # (t,)
    unknown: NDArray[np.bool_]  # (t,), True where the vocabulary has no token for the text
    words: Ids  # (t,), number of the word that the token is a piece of; words are what the tokenizer splits

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """How two texts stand in one input: `before` first `between` second `after`."""

    before: Ids
    between: Ids
    after: Ids
    segments: tuple[int, int, int, int, int]
    """Segment id of each of the five parts."""

    @property
    def n_special(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


class Tokenizer:
    """Safe to call from any thread; holds no state that changes.

    Names of special tokens inside a text ("[SEP]") are ordinary text.

    Args:
        definition: contents of a `tokenizer.json`.
    """

    def __init__(self, definition: bytes) -> None:
        self._tokenizer = tokenizers.Tokenizer.from_buffer(definition)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True
        parsed: dict[str, Any] = json.loads(definition)
        self._unknown_id = _unknown_id(self._tokenizer, parsed["model"])
        self.splits_at_spaces = (parsed.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        """No token reaches across a space or line feed, nor depends on what is beyond it."""
        self.prefix, self.suffix = _special_ids(self._tokenizer)
        self.pair = _pair_template(self._tokenizer)

    @property
    def n_special(self) -> int:
        """Special tokens around a single text."""
        return int(self._tokenizer.num_special_tokens_to_add(is_pair=False))

    def tokenize(self, text: str) -> Tokens:
        sections = self._sections(_encodable(text))
        encodings = [self._tokenizer.encode(section, add_special_tokens=False) for section in sections]
        ids = np.concatenate([np.array(e.ids, dtype=np.int32) for e in encodings])
        begins = np.cumsum([0, *(len(section) for section in sections[:-1])])
        offsets = np.concatenate(
            [
                np.array(e.offsets, dtype=np.int32).reshape(-1, 2) + np.int32(begin)
                for e, begin in zip(encodings, begins, strict=True)
            ]
        )  # (t, 2)
        words = _words([encoding.word_ids for encoding in encodings])
        return Tokens(ids, offsets[:, 0], offsets[:, 1], self.unknown(ids), words)

    def token_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Ids alone, cheaper than `tokenize`; the same ids."""
        owners: list[int] = []
        sections: list[str] = []
        for i, text in enumerate(texts):
            parts = self._sections(_encodable(text))
            sections += parts
            owners += [i] * len(parts)
        encodings = self._tokenizer.encode_batch_fast(sections, add_special_tokens=False)
        ids: list[list[int]] = [[] for _ in texts]
        for i, encoding in zip(owners, encodings, strict=True):
            ids[i] += encoding.ids
        return [np.array(of_text, dtype=np.int32) for of_text in ids]

    def count(self, text: str) -> int:
        """Number of tokens, special tokens not included."""
        return len(self.token_ids([text])[0])

    def pieces(self, text: str, pair: str | None = None) -> Pieces:
        """All that a model reads of one text or two: special tokens, segments and words included; not cut."""
        second = None if pair is None else _encodable(pair)
        whole = self._tokenizer.encode(_encodable(text), second, add_special_tokens=True)
        return read_encoding(whole, unknown=self.unknown(np.array(whole.ids, dtype=np.int32)))

    def normalized(self, text: str) -> str:
        """The text as it is looked up: for an uncased model in lower case, without accents."""
        normalizer = self._tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(_encodable(text)))

    def name(self, token_id: int) -> str:
        """As written in the vocabulary."""
        return str(self._tokenizer.id_to_token(token_id))

    def id_of(self, token: str) -> int | None:
        """Of a token written as in the vocabulary; None for what is not there."""
        found = self._tokenizer.token_to_id(token)
        return None if found is None else int(found)

    def unknown(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of the ids stand for "not in the vocabulary"."""
        unknown: NDArray[np.bool_] = ids == self._unknown_id
        return unknown

    def _sections(self, text: str) -> list[str]:
        """Cut a long text where no token reaches across; at least one section, joined they are the text."""
        if not self.splits_at_spaces:
            return [text]
        cuts = [0]
        while border := SECTION_BORDER.search(text, cuts[-1] + SECTION_CHARS):
            cuts.append(border.start())
        return [text[start:end] for start, end in zip(cuts, [*cuts[1:], None], strict=True)]


def title_limit(max_tokens: int) -> int:
    """Tokens of a title that an encoder reads in front of a text: at most a quarter of its input.

    The rest of a longer title is left out, so that a title can never crowd out its text.
    """
    return max_tokens // 4


def _encodable(text: str) -> str:
    return LONE_SURROGATE.sub(REPLACEMENT, text)


def _unknown_id(tokenizer: tokenizers.Tokenizer, model: dict[str, Any]) -> int:
    """-1 where every text has tokens, as in byte-level vocabularies."""
    if isinstance(model.get("unk_id"), int):
        return int(model["unk_id"])
    token = model.get("unk_token")
    found = tokenizer.token_to_id(token) if token else None
    return -1 if found is None else int(found)


def _special_ids(tokenizer: tokenizers.Tokenizer) -> tuple[Ids, Ids]:
    """Special tokens before and after a single text, found by looking at a text of few tokens."""
    encoding = tokenizer.encode("a", add_special_tokens=True)
    ids = np.array(encoding.ids, dtype=np.int32)
    ordinary = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
    return ids[: ordinary[0]], ids[ordinary[-1] + 1 :]


def _pair_template(tokenizer: tokenizers.Tokenizer) -> PairTemplate:
    """Found by looking at a pair of short texts."""
    encoding = tokenizer.encode("a", "a", add_special_tokens=True)
    ids, segments = np.array(encoding.ids, dtype=np.int32), encoding.type_ids
    texts = np.array([-1 if text is None else text for text in encoding.sequence_ids])
    first, second = np.flatnonzero(texts == 0), np.flatnonzero(texts == 1)
    before, between, after = ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :]
    places = (0, int(first[0]), int(first[-1]) + 1, int(second[0]), len(ids) - 1)
    of_parts = tuple(segments[place] for place in places)
    return PairTemplate(before, between, after, of_parts)  # type: ignore[arg-type]  # five


def _words(of_sections: Sequence[Sequence[int | None]]) -> Ids:
    """Counted on from section to section; sections are cut between words."""
    counted: list[Ids] = []
    n_before = 0
    for words in of_sections:
        numbers = np.array([-1 if word is None else word for word in words], dtype=np.int32)
        numbers = np.maximum.accumulate(numbers)  # what belongs to no word goes with the word before
        counted.append(numbers + np.int32(n_before))
        n_before += int(numbers.max(initial=-1)) + 1
    return np.concatenate(counted)
