"""Answer spans out of a reader's logits of start and end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.graphemes import widened
from app.engine.pairs import PairInput, PairInputs
from app.engine.runner import Outputs
from app.engine.tokenizer import Tokens

MAX_ANSWER_TOKENS = 30
"""As in BERT's reader (Devlin et al. 2019, run_squad.py: max_answer_length)."""
MAX_WORD_CHARS = 32
"""Spans grow to whole words, unless a word is longer than this: then its script does not separate words."""
N_SCORED = 20
"""Spans of a window that are looked at for several answers that do not overlap."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`, in code points. Logits are raw sums over start and end."""

    start: int
    end: int
    logit: float
    null_logit: float
    """Of "no answer" in the same window."""
    probability: float
    """Softmax over the starts times softmax over the ends of the window, "no answer" among both. 0..1; not
    calibrated."""

    @property
    def margin(self) -> float:
        """How much better than "no answer" in its own window; above 0 where it is better."""
        return self.logit - self.null_logit


def best_spans(
    text: str,
    pair: PairInputs,
    outputs: Sequence[Outputs],
    *,
    n_spans: int,
    max_tokens: int = MAX_ANSWER_TOKENS,
) -> tuple[Span, ...]:
    """At most `n_spans` of all windows, by descending margin; none overlaps a better one.

    Args:
        outputs: of each window, with logits `start` and `end` (t,).
        max_tokens: of a span.
    """
    n_scored = N_SCORED if n_spans > 1 else 1
    found = [
        span
        for each, logits in zip(pair.inputs, outputs, strict=True)
        for span in _of_window(text, pair.tokens, each, logits, max_tokens=max_tokens, n_scored=n_scored)
    ]
    chosen: list[Span] = []
    for span in sorted(found, key=lambda span: (-span.margin, span.start, span.end)):
        if len(chosen) == n_spans:
            break
        if all(span.end <= other.start or other.end <= span.start for other in chosen):
            chosen.append(span)
    return tuple(chosen)


def _of_window(
    text: str, tokens: Tokens, pair: PairInput, logits: Outputs, *, max_tokens: int, n_scored: int
) -> list[Span]:
    """The best `n_scored`, and those that tie with the last of them, up to `N_SCORED`."""
    window = pair.window
    n = window.end - window.first
    if n == 0:
        return []
    starts, ends = (logits[name].astype(np.float64) for name in ("start", "end"))
    null = float(starts[0] + ends[0])
    of_text = slice(pair.text_start, pair.text_start + n)
    own = slice(window.own_first - window.first, window.own_end - window.first)
    scores = span_scores(starts[of_text], ends[of_text], own=own, max_tokens=max_tokens)
    log_total = _log_sum(np.append(starts[of_text], starts[0])) + _log_sum(np.append(ends[of_text], ends[0]))
    found: list[Span] = []
    for place in _best_places(scores, n_scored):
        extra, first = divmod(int(place), n)
        score = float(scores[extra, first])
        if np.isneginf(score):
            break
        start, end = _slice(text, tokens, window.first + first, window.first + first + extra)
        found.append(Span(start, end, score, null, float(np.exp(score - log_total))))
    return found


def _best_places(scores: Floats, n: int) -> Sequence[int]:
    """Flat, best first; equal ones by place. All that tie with the n-th, but at most `N_SCORED`."""
    flat = scores.ravel()
    least = np.partition(flat, -n)[-n] if n < len(flat) else -np.inf
    places = np.flatnonzero(flat >= least)
    best: list[int] = places[np.argsort(-flat[places], kind="stable")][:N_SCORED].tolist()
    return best


def span_scores(starts: Floats, ends: Floats, *, own: slice, max_tokens: int) -> Floats:
    """Logit of every span: s[e, i] = starts[i] + ends[i + e], of e + 1 tokens from token i.

    Args:
        starts, ends: (n,), of the tokens of a window.
        own: tokens at which a span may begin.

    Returns:
        (max_tokens, n), -inf where there is no such span.
    """
    n = len(starts)
    scores = np.full((min(max_tokens, n), n), -np.inf)
    for extra in range(len(scores)):
        scores[extra, : n - extra] = starts[: n - extra] + ends[extra:]
    is_own = np.zeros(n, dtype=np.bool_)
    is_own[own] = True
    scores[:, ~is_own] = -np.inf
    return scores


def _slice(text: str, tokens: Tokens, first: int, last: int) -> tuple[int, int]:
    """Of tokens `first` to `last`, grown to whole words and graphemes."""
    start, end = int(tokens.starts[first]), int(tokens.ends[last])
    if (word := _word(tokens, first))[1] - word[0] <= MAX_WORD_CHARS:
        start = word[0]
    if (word := _word(tokens, last))[1] - word[0] <= MAX_WORD_CHARS:
        end = word[1]
    return widened(text, start, end)


def _word(tokens: Tokens, place: int) -> tuple[int, int]:
    """Offsets of the word that a token belongs to."""
    number = tokens.words[place]
    first = int(np.searchsorted(tokens.words, number, side="left"))
    last = int(np.searchsorted(tokens.words, number, side="right")) - 1
    return int(tokens.starts[first]), int(tokens.ends[last])


def _log_sum(logits: Floats) -> float:
    greatest = float(logits.max())
    return greatest + float(np.log(np.exp(logits - greatest).sum()))
