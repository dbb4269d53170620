"""What a model sees of texts, and does with them inside."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from app.api.schemas import RequestBody, ResponseBody
from app.engine.inspection import InspectedModel, Seen
from app.engine.offsets import utf16_offsets
from app.engine.pieces import Ids, Pieces

MAX_TEXTS = 1_000
"""Texts of one request to tokenize or classify."""
MAX_INSPECTED_CHARS = 100_000
"""Of all texts of a request; every token is answered with a dozen fields."""
MAX_FILLINGS = 100

InspectedRole = Literal["embedder", "lens"]
ROLE = "Role of the model to look into: `embedder` (the bi-encoder of searches) or `lens` (fills masks)."
TRUNCATE = (
    "Whether what exceeds the model's limit is cut (from the end of the second text first) and reported as "
    "`truncated`; if not, it is refused with 422."
)


class TokenizeRequest(RequestBody):
    texts: list[str] = Field(
        max_length=MAX_TEXTS,
        description=f"At most {MAX_TEXTS}, of at most {MAX_INSPECTED_CHARS} characters in all.",
    )
    pairs: list[str] | None = Field(
        None, max_length=MAX_TEXTS, description="Second texts, one for each text, read together with it."
    )
    model: InspectedRole = Field("embedder", description=ROLE)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.pairs is not None and len(self.pairs) != len(self.texts):
            raise ValueError(f"pairs has {len(self.pairs)} texts and texts {len(self.texts)}: as many needed")
        n_chars = sum(map(len, [*self.texts, *(self.pairs or [])]))
        if n_chars > MAX_INSPECTED_CHARS:
            raise ValueError(
                f"the texts have {n_chars} characters, at most {MAX_INSPECTED_CHARS} are allowed"
            )
        return self


class TextRequest(RequestBody):
    """One text, or two that the model reads together."""

    text: str = Field(max_length=MAX_INSPECTED_CHARS)
    pair: str | None = Field(
        None, max_length=MAX_INSPECTED_CHARS, description="A second text: `[CLS] text [SEP] pair [SEP]`."
    )
    model: InspectedRole = Field("embedder", description=ROLE)
    truncate: bool = Field(True, description=TRUNCATE)


class EmbeddingsRequest(TextRequest):
    values: bool = Field(False, description="Whether to answer the vectors themselves beside their norms.")


class AttentionRequest(TextRequest):
    layers: list[int] | None = Field(
        None, min_length=1, max_length=100, description="0-based numbers of layers; all if not given."
    )
    heads: list[int] | None = Field(
        None, min_length=1, max_length=100, description="0-based numbers of heads; all if not given."
    )
    average_heads: bool = Field(False, description="Whether to answer the mean over the chosen heads.")


class FillMaskRequest(RequestBody):
    text: str = Field(
        max_length=MAX_INSPECTED_CHARS, description="With `[MASK]` in place of each token to find. Never cut."
    )
    top_k: int = Field(5, ge=1, le=MAX_FILLINGS, description="Most tokens to answer for each mask.")


class NextSentenceRequest(RequestBody):
    text: str = Field(max_length=MAX_INSPECTED_CHARS)
    next_text: str = Field(max_length=MAX_INSPECTED_CHARS, description="What may follow it.")
    truncate: bool = Field(True, description=TRUNCATE)


class PieceResponse(ResponseBody):
    token: str = Field(description="As written in the vocabulary; ## goes on within a word.")
    id: int = Field(description="Number of the token in the vocabulary.")
    text_index: int | None = Field(
        description="0 of the first text, 1 of the second, null for a special token."
    )
    start: int = Field(description="Offset of its first character in its text, in code points.")
    end: int = Field(description="Offset behind its last character, in code points.")
    start_utf16: int = Field(description="`start` in UTF-16 code units, as JavaScript counts.")
    end_utf16: int = Field(description="`end` in UTF-16 code units.")
    word: int | None = Field(description="0-based number of its word in its text; null for a special token.")
    special: bool = Field(description="Whether the model adds it, such as [CLS].")
    unknown: bool = Field(description="Whether the vocabulary has nothing for this part of the text.")
    segment: int = Field(description="Number of the segment embedding.")
    position: int = Field(description="0-based number of the position embedding.")


class SeenResponse(ResponseBody):
    pieces: list[PieceResponse] = Field(description="Tokens in the order in which the model reads them.")
    n_tokens: int = Field(description="Tokens before any truncation, special tokens included.")
    truncated: bool = Field(description="Whether tokens were left out.")
    unknown_share: float = Field(description="Share of unknown tokens among those not special, 0 to 1.")
    pieces_per_word: float = Field(description="Tokens per word, 1 or more; 0 without words.")


class TokenizedResponse(SeenResponse):
    normalized: list[str] = Field(
        description="Each text as it is looked up in the vocabulary: an uncased model reads lower case "
        "without accents. Offsets count the original."
    )
    exceeds_max_tokens: bool = Field(description="Whether the model would need it shortened.")


class TokenizeResponse(ResponseBody):
    results: list[TokenizedResponse] = Field(description="One for each text, in order; nothing is cut.")
    model: str = Field(description="Name of the model.")
    max_tokens: int = Field(description="Most tokens that the model takes, special tokens included.")


class InspectedResponse(SeenResponse):
    model: str = Field(description="Name of the model.")
    max_tokens: int = Field(description="Most tokens that the model takes, special tokens included.")


class NormsResponse(ResponseBody):
    """Euclidean lengths of the vectors that BERT adds up for one token."""

    token: float = Field(description="Norm of the embedding of the token's id.")
    segment: float = Field(description="Norm of the embedding of its segment.")
    position: float = Field(description="Norm of the embedding of its position.")
    output: float = Field(description="Norm of their sum after layer norm: what the first layer reads.")


class VectorsResponse(ResponseBody):
    token: list[float] = Field(description="Embedding of the token's id.")
    segment: list[float] = Field(description="Embedding of its segment.")
    position: list[float] = Field(description="Embedding of its position.")
    output: list[float] = Field(description="Their sum after layer norm.")


class EmbeddingsResponse(InspectedResponse):
    dimensions: int = Field(description="Length of each vector.")
    norms: list[NormsResponse] = Field(description="One for each piece.")
    values: list[VectorsResponse] | None = Field(description="One for each piece, if asked for.")


class AttentionResponse(InspectedResponse):
    n_layers: int = Field(description="Layers that the model has.")
    n_heads: int = Field(description="Heads of each layer.")
    layers: list[int] = Field(description="0-based numbers of the layers in `attention`.")
    heads: list[int] = Field(description="0-based numbers of the heads in `attention`, or of its mean.")
    attention: list[list[list[list[float]]]] = Field(
        description="By layer, head (one, if averaged), reading piece and piece read from: shares, 0 to 1, "
        "that sum to 1 over the last."
    )


class FillingResponse(ResponseBody):
    token: str = Field(description="As written in the vocabulary; ## goes on within a word.")
    token_id: int = Field(description="Number of the token in the vocabulary.")
    score: float = Field(description="Probability among the whole vocabulary, 0 to 1.")
    logit: float = Field(description="What tokens are ranked by, unbounded.")


class MaskResponse(ResponseBody):
    start: int = Field(description="Offset of the mask in the text, in code points.")
    end: int = Field(description="Offset behind it, in code points.")
    fillings: list[FillingResponse] = Field(description="Likeliest first.")


class FillMaskResponse(ResponseBody):
    masks: list[MaskResponse] = Field(description="In the order of the text; each is filled for itself.")
    model: str = Field(description="Name of the model.")
    max_tokens: int = Field(description="Most tokens that the model takes, special tokens included.")


class NextSentenceResponse(ResponseBody):
    score: float = Field(description="Probability that the second text follows the first, 0 to 1.")
    logit: float = Field(description="The logit of following less that of a random text, unbounded.")
    n_tokens: int = Field(description="Tokens of both before any truncation, special tokens included.")
    truncated: bool = Field(description="Whether tokens were left out.")
    model: str = Field(description="Name of the model.")
    max_tokens: int = Field(description="Most tokens that the model takes, special tokens included.")


def seen_fields(seen: Seen, texts: Sequence[str]) -> dict[str, Any]:
    """Those of `SeenResponse`."""
    return {
        "pieces": _pieces(seen.pieces, texts),
        "n_tokens": seen.n_tokens,
        "truncated": seen.truncated,
        "unknown_share": round(seen.pieces.unknown_share, 4),
        "pieces_per_word": round(seen.pieces.pieces_per_word, 4),
    }


def inspected_fields(model: InspectedModel, seen: Seen, texts: Sequence[str]) -> dict[str, Any]:
    """Those of `InspectedResponse`."""
    return {**seen_fields(seen, texts), "model": model.name, "max_tokens": model.max_tokens}


def _pieces(pieces: Pieces, texts: Sequence[str]) -> list[PieceResponse]:
    starts, ends = _utf16(pieces, texts, pieces.starts), _utf16(pieces, texts, pieces.ends)
    return [
        PieceResponse(
            token=pieces.tokens[i],
            id=int(pieces.ids[i]),
            text_index=_or_none(pieces.text[i]),
            start=int(pieces.starts[i]),
            end=int(pieces.ends[i]),
            start_utf16=starts[i],
            end_utf16=ends[i],
            word=_or_none(pieces.words[i]),
            special=bool(pieces.text[i] < 0),
            unknown=bool(pieces.unknown[i]),
            segment=int(pieces.segments[i]),
            position=i,
        )
        for i in range(len(pieces))
    ]


def _utf16(pieces: Pieces, texts: Sequence[str], offsets: Ids) -> list[int]:
    converted = np.zeros(len(pieces), dtype=np.int64)
    for i, text in enumerate(texts):
        own = pieces.text == i
        converted[own] = utf16_offsets(text, offsets[own])
    places: list[int] = converted.tolist()
    return places


def _or_none(number: np.int32) -> int | None:
    return None if number < 0 else int(number)
