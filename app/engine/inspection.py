"""What a model sees and does inside: pieces, embeddings, attention, and what it would fill in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.engine.numpy_bert import EmbeddingParts, NumpyBert, softmax
from app.engine.pieces import Pieces
from app.engine.tokenizer import Tokenizer
from app.errors import InvalidInput, ModelNotConfigured, ModelUnavailable, TextTooLong

MASK = "[MASK]"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model reads of a text or pair."""

    pieces: Pieces
    """At most max_tokens, special tokens included."""
    n_tokens: int
    """Before any truncation."""

    @property
    def truncated(self) -> bool:
        return self.n_tokens > len(self.pieces)


@dataclass(frozen=True, slots=True)
class Filling:
    """A token that could stand in place of a mask."""

    token: str
    token_id: int
    score: float
    """Probability among the whole vocabulary, 0..1."""
    logit: float


class InspectedModel:
    """A BERT with its tokenizer. Its weights are mapped at first use; tokenizing needs none."""

    def __init__(
        self, name: str, *, tokenizer: Tokenizer, max_tokens: int, open_bert: Callable[[], NumpyBert]
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self._open_bert = open_bert

    @cached_property
    def bert(self) -> NumpyBert:
        """Raises ModelNotConfigured where the model is no BERT."""
        try:
            return self._open_bert()
        except ModelUnavailable as error:
            raise ModelNotConfigured(f"{self.name}: {error}") from error

    def see(self, text: str, pair: str | None = None, *, truncate: bool) -> Seen:
        """
        Raises:
            TextTooLong: more than max_tokens, and `truncate` is False.
        """
        pieces = self.tokenizer.pieces(text, pair)
        if len(pieces) > self.max_tokens and not truncate:
            raise TextTooLong(
                f"{len(pieces)} tokens, the model takes {self.max_tokens}; shorten it or allow truncation",
                n_tokens=len(pieces),
                max_tokens=self.max_tokens,
                where=("text",),
            )
        return Seen(pieces.cut(self.max_tokens), len(pieces))

    def embeddings(self, pieces: Pieces) -> EmbeddingParts:
        return self.bert.embed(pieces.ids, pieces.segments)

    def attention(self, pieces: Pieces) -> NDArray[np.float32]:
        """(layers, heads, t, t), rows sum to 1."""
        return self.bert.forward(pieces.ids, pieces.segments).attention

    def fill_masks(self, text: str, *, top_k: int) -> Sequence[tuple[int, Sequence[Filling]]]:
        """For each `[MASK]` in the text: its offset, and the likeliest tokens, best first.

        Raises:
            ModelNotConfigured: the model has no head for it.
            InvalidInput: no mask, or too many tokens.
        """
        self._require_head("cls.predictions.bias", "fills masks")
        parts = text.split(MASK)
        if len(parts) < 2:
            raise InvalidInput(f"write {MASK} where a token is to be found", where=("text",))
        ids, places = self._with_masks(parts)
        hidden = self.bert.forward(ids, np.zeros_like(ids)).hidden
        logits = self.bert.token_logits(hidden[places]).astype(np.float64)  # (masks, vocabulary)
        offsets = np.cumsum([len(part) for part in parts[:-1]]) + len(MASK) * np.arange(len(places))
        return [
            (int(offset), self._best(of_mask, top_k)) for offset, of_mask in zip(offsets, logits, strict=True)
        ]

    def follows(self, pieces: Pieces) -> tuple[float, float]:
        """(logit that the second text follows, logit that it is a random one)."""
        self._require_head("cls.seq_relationship.weight", "predicts next sentences")
        hidden = self.bert.forward(pieces.ids, pieces.segments).hidden
        is_next, is_random = self.bert.next_sentence_logits(hidden)
        return float(is_next), float(is_random)

    def _require_head(self, name: str, what: str) -> None:
        if not self.bert.has(name):
            raise ModelNotConfigured(
                f"{self.name} has no head that {what}; models of BertForPreTraining have"
            )

    def _with_masks(self, parts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        mask_id = self.tokenizer.id_of(MASK)
        if mask_id is None:
            raise ModelNotConfigured(f"the vocabulary of {self.name} has no {MASK}")
        ids = [self.tokenizer.prefix]
        for i, of_part in enumerate(self.tokenizer.token_ids(parts)):
            ids += [np.array([mask_id], dtype=np.int32), of_part] if i else [of_part]
        joined = np.concatenate([*ids, self.tokenizer.suffix])
        if len(joined) > self.max_tokens:
            raise TextTooLong(
                f"{len(joined)} tokens, the model takes {self.max_tokens}; shorten the text around {MASK}",
                n_tokens=len(joined),
                max_tokens=self.max_tokens,
                where=("text",),
            )
        return joined, np.flatnonzero(joined == mask_id)

    def _best(self, logits: NDArray[np.float64], top_k: int) -> Sequence[Filling]:
        """Of (vocabulary,) logits; equal ones by id."""
        scores = softmax(logits)
        return [
            Filling(self.tokenizer.name(int(i)), int(i), float(scores[i]), float(logits[i]))
            for i in np.argsort(-logits, kind="stable")[:top_k]
        ]
