"""Texts into what the encoder reads: prompt, title and text as token ids, cut to the model's limit."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.tokenizer import Ids, Tokenizer, title_limit
from app.errors import BlankText, TextTooLong

INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
"""Unicode categories: controls, format marks, lone surrogates, separators."""


@dataclass(frozen=True, slots=True)
class EncoderInputs:
    sequences: Sequence[Ids]
    """Of each text: ids with special tokens, at most max_tokens."""
    n_tokens: NDArray[np.int32]  # (n,), before any truncation, special tokens included
    truncated: NDArray[np.bool_]  # (n,)
    unknown_share: NDArray[np.float32]  # (n,)


def encoder_inputs(
    texts: Sequence[str],
    titles: Sequence[str | None] | None,
    *,
    tokenizer: Tokenizer,
    prompt: str,
    max_tokens: int,
    truncate: bool,
) -> EncoderInputs:
    """Token ids `[CLS] prompt title text [SEP]` of each text.

    Prompt, title and text are tokenised apart and joined, so their counts add up. What exceeds `max_tokens`
    is cut from the end of the text; of a title only `title_limit(max_tokens)` tokens are read or counted.

    Raises:
        BlankText: a text has no visible character.
        TextTooLong: a text exceeds max_tokens and `truncate` is False.
    """
    for i, text in enumerate(texts):
        if is_blank(text):
            raise BlankText(f"text {i} is blank: it needs at least one visible character", where=("texts", i))
    contents = _contents(texts, titles, tokenizer=tokenizer, prompt=prompt, max_tokens=max_tokens)
    n_tokens = np.array([len(content) + tokenizer.n_special for content in contents], dtype=np.int32)
    truncated = n_tokens > max_tokens
    if truncated.any() and not truncate:
        i = int(truncated.argmax())
        n = int(n_tokens[i])
        raise TextTooLong(
            f"text {i} has {n} tokens, the model takes {max_tokens}; shorten it or allow truncation",
            n_tokens=n,
            max_tokens=max_tokens,
            where=("texts", i),
        )
    room = max_tokens - tokenizer.n_special
    sequences = [np.concatenate([tokenizer.prefix, c[:room], tokenizer.suffix]) for c in contents]
    unknown_share = [tokenizer.unknown(content).mean() if len(content) else 0.0 for content in contents]
    return EncoderInputs(sequences, n_tokens, truncated, np.array(unknown_share, dtype=np.float32))


def is_blank(text: str) -> bool:
    """Whether nothing in the text can be seen: white space, controls and zero-width marks only."""
    return all(unicodedata.category(character) in INVISIBLE for character in text)


def _contents(
    texts: Sequence[str],
    titles: Sequence[str | None] | None,
    *,
    tokenizer: Tokenizer,
    prompt: str,
    max_tokens: int,
) -> list[Ids]:
    text_ids = tokenizer.token_ids(texts)
    prompt_ids = tokenizer.token_ids([prompt.rstrip()])[0]
    if titles is None:
        return [np.concatenate([prompt_ids, ids]) for ids in text_ids] if len(prompt_ids) else text_ids
    title_ids = tokenizer.token_ids([title or "" for title in titles])
    limit = title_limit(max_tokens)
    return [
        np.concatenate([prompt_ids, title[:limit], ids])
        for title, ids in zip(title_ids, text_ids, strict=True)
    ]
