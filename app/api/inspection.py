"""/v1/tokenize and /v1/inspect: what a model sees of a text, and does with it inside."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Depends, Request, Response

from app.api.bodies import StrictRoute, json_response
from app.api.permits import search_permit
from app.api.problems import responses
from app.api.schemas.inspection import (
    AttentionRequest,
    AttentionResponse,
    EmbeddingsRequest,
    EmbeddingsResponse,
    FillingResponse,
    FillMaskRequest,
    FillMaskResponse,
    MaskResponse,
    NextSentenceRequest,
    NextSentenceResponse,
    NormsResponse,
    TextRequest,
    TokenizedResponse,
    TokenizeRequest,
    TokenizeResponse,
    VectorsResponse,
    inspected_fields,
    seen_fields,
)
from app.api.state import parts
from app.engine.inspection import MASK, InspectedModel, Seen
from app.engine.numpy_bert import Array
from app.engine.probability import sigmoid
from app.errors import InvalidInput

router = APIRouter(
    prefix="/v1", tags=["inspection"], route_class=StrictRoute, dependencies=[Depends(search_permit)]
)

MAX_ATTENTION_VALUES = 1_000_000
"""Numbers in one answer, about ten bytes each."""
DECIMALS = 6

PAIR = {"text": "Where is Warsaw?", "pair": "Warsaw lies on the Vistula in east-central Poland."}
TOKENIZE_EXAMPLES: dict[str, Any] = {
    "texts": {
        "summary": "Accents, an emoji, words that are cut",
        "value": {"texts": ["Élan vital 😀", "electroencephalography"]},
    },
    "pair": {
        "summary": "Two texts read together",
        "value": {"texts": [PAIR["text"]], "pairs": [PAIR["pair"]]},
    },
}
EMBEDDINGS_EXAMPLES: dict[str, Any] = {
    "norms": {"summary": "Norms alone", "value": {"text": "The bank of the river"}},
    "values": {"summary": "The vectors, too", "value": {**PAIR, "values": True}},
}
FILL_MASK_EXAMPLES: dict[str, Any] = {
    "capital": {"summary": "One word", "value": {"text": "Warsaw is the [MASK] of Poland.", "top_k": 3}}
}
NEXT_SENTENCE_EXAMPLES: dict[str, Any] = {
    "follows": {
        "summary": "Does it follow?",
        "value": {"text": "She opened the door.", "next_text": "Nobody was there."},
    }
}
ATTENTION_EXAMPLES: dict[str, Any] = {
    "pair": {"summary": "A question and a passage, every head", "value": PAIR},
    "layer": {
        "summary": "The mean of the last layer's heads",
        "value": {"text": "The animal was too tired", "layers": [5], "average_heads": True},
    },
}


@router.post(
    "/tokenize",
    operation_id="tokenize",
    summary="Show what a model reads of texts",
    response_description="Pieces of each text.",
    response_model=TokenizeResponse,
    responses=responses(409, 413, 415),
)
def tokenize(
    request: Request, body: Annotated[TokenizeRequest, Body(openapi_examples=TOKENIZE_EXAMPLES)]
) -> Response:
    """Cut each text into the pieces of the model's vocabulary, with ids, offsets, words, segments and
    positions. Nothing is cut off: whether the model would have to is told. An empty text has the special
    tokens alone."""
    model = parts(request).inspected.of_role(body.model)
    pairs = body.pairs if body.pairs is not None else [None] * len(body.texts)
    return json_response(
        TokenizeResponse(
            results=[_tokenized(model, text, pair) for text, pair in zip(body.texts, pairs, strict=True)],
            model=model.name,
            max_tokens=model.max_tokens,
        )
    )


@router.post(
    "/inspect/embeddings",
    operation_id="inspect_embeddings",
    summary="Show the embeddings that a model adds up",
    response_description="Norms, and vectors if asked for, of each piece.",
    response_model=EmbeddingsResponse,
    responses=responses(409, 413, 415),
)
def inspect_embeddings(
    request: Request, body: Annotated[EmbeddingsRequest, Body(openapi_examples=EMBEDDINGS_EXAMPLES)]
) -> Response:
    """BERT reads the sum of three embeddings for each piece, of its token, its segment and its position,
    after layer norm. These are the inputs of the first layer, not the vectors that searches compare."""
    model = parts(request).inspected.of_role(body.model)
    seen = _see(model, body)
    found = model.embeddings(seen.pieces)
    columns = (found.token, found.segment, found.position, found.output)
    norms = np.stack([np.linalg.norm(each, axis=1) for each in columns], axis=1)  # (t, 4)
    return json_response(
        EmbeddingsResponse(
            **inspected_fields(model, seen, _texts(body)),
            dimensions=model.bert.dimensions,
            norms=[NormsResponse(**_named(row)) for row in _rounded(norms)],
            values=[VectorsResponse(**_named(row)) for row in _rounded(np.stack(columns, axis=1))]
            if body.values
            else None,
        )
    )


@router.post(
    "/inspect/attention",
    operation_id="inspect_attention",
    summary="Show who attends to whom",
    response_description="Shares of attention by layer and head.",
    response_model=AttentionResponse,
    responses=responses(409, 413, 415),
)
def inspect_attention(
    request: Request, body: Annotated[AttentionRequest, Body(openapi_examples=ATTENTION_EXAMPLES)]
) -> Response:
    """What share each piece takes from every piece, for each layer and head of a text or of a pair.

    The answer holds at most 1,000,000 shares: choose layers or heads, or their mean, for long texts.
    """
    model = parts(request).inspected.of_role(body.model)
    seen = _see(model, body)
    layers = _chosen(body.layers, model.bert.n_layers, "layers")
    heads = _chosen(body.heads, model.bert.n_heads, "heads")
    n_values = len(layers) * (1 if body.average_heads else len(heads)) * len(seen.pieces) ** 2
    if n_values > MAX_ATTENTION_VALUES:
        raise InvalidInput(
            f"{len(seen.pieces)} pieces in {len(layers)} layers make {n_values} numbers, at most "
            f"{MAX_ATTENTION_VALUES} are answered: choose layers or heads, set average_heads, or shorten it",
            where=("layers",),
        )
    attention = model.attention(seen.pieces)[np.ix_(layers, heads)]  # (layers, heads, t, t)
    if body.average_heads:
        attention = attention.mean(axis=1, keepdims=True)
    return json_response(
        AttentionResponse(
            **inspected_fields(model, seen, _texts(body)),
            n_layers=model.bert.n_layers,
            n_heads=model.bert.n_heads,
            layers=layers,
            heads=heads,
            attention=_rounded(attention),
        )
    )


@router.post(
    "/inspect/fill-mask",
    operation_id="inspect_fill_mask",
    summary="Show what a model expects in place of a mask",
    response_description="The likeliest tokens for each mask.",
    response_model=FillMaskResponse,
    responses=responses(409, 413, 415),
)
def inspect_fill_mask(
    request: Request, body: Annotated[FillMaskRequest, Body(openapi_examples=FILL_MASK_EXAMPLES)]
) -> Response:
    """What BERT was trained for: to find masked tokens from both sides. Needs a model with that head as
    `lens`; without one the answer is 409."""
    model = parts(request).inspected.of_role("lens")
    return json_response(
        FillMaskResponse(
            masks=[
                MaskResponse(
                    start=start,
                    end=start + len(MASK),
                    fillings=[FillingResponse.model_validate(each) for each in found],
                )
                for start, found in model.fill_masks(body.text, top_k=body.top_k)
            ],
            model=model.name,
            max_tokens=model.max_tokens,
        )
    )


@router.post(
    "/inspect/next-sentence",
    operation_id="inspect_next_sentence",
    summary="Say whether a text follows another",
    response_description="A probability.",
    response_model=NextSentenceResponse,
    responses=responses(409, 413, 415),
)
def inspect_next_sentence(
    request: Request, body: Annotated[NextSentenceRequest, Body(openapi_examples=NEXT_SENTENCE_EXAMPLES)]
) -> Response:
    """The second task that BERT was trained for: to tell the sentence that followed from a random one. Needs
    a model with that head as `lens`; without one the answer is 409."""
    model = parts(request).inspected.of_role("lens")
    seen = model.see(body.text, body.next_text, truncate=body.truncate)
    is_next, is_random = model.follows(seen.pieces)
    logit = is_next - is_random
    return json_response(
        NextSentenceResponse(
            score=sigmoid(logit),
            logit=logit,
            n_tokens=seen.n_tokens,
            truncated=seen.truncated,
            model=model.name,
            max_tokens=model.max_tokens,
        )
    )


def _tokenized(model: InspectedModel, text: str, pair: str | None) -> TokenizedResponse:
    pieces = model.tokenizer.pieces(text, pair)
    texts = [text] if pair is None else [text, pair]
    return TokenizedResponse(
        **seen_fields(Seen(pieces, len(pieces)), texts),
        normalized=[model.tokenizer.normalized(each) for each in texts],
        exceeds_max_tokens=len(pieces) > model.max_tokens,
    )


def _see(model: InspectedModel, body: TextRequest) -> Seen:
    return model.see(body.text, body.pair, truncate=body.truncate)


def _texts(body: TextRequest) -> list[str]:
    return [body.text] if body.pair is None else [body.text, body.pair]


def _chosen(wanted: Sequence[int] | None, n: int, what: str) -> list[int]:
    """Numbers of layers or heads."""
    if wanted is None:
        return list(range(n))
    for number in wanted:
        if not 0 <= number < n:
            raise InvalidInput(f"{number} is none of this model's {what}: 0 to {n - 1}", where=(what,))
    return list(dict.fromkeys(wanted))


def _named(row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(("token", "segment", "position", "output"), row, strict=True))


def _rounded(numbers: Array) -> Any:
    """As lists; in float64, where few decimals are written as few."""
    return np.round(numbers.astype(np.float64), DECIMALS).tolist()
