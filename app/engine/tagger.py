"""The role of finding entities: texts in, entities with offsets out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.activity import Activity
from app.engine.capitals import capital_segments
from app.engine.description import HeadDescription
from app.engine.entities import Aggregation, Scores, entities, iob2_follows, tagged_words
from app.engine.head_files import HeadFiles
from app.engine.numpy_bert import Array, softmax
from app.engine.pieces import Ids, Pieces
from app.engine.runner import Runner, TokenSequence
from app.engine.token_windows import Window, token_windows
from app.engine.tokenizer import Tokenizer
from app.engine.whole_words import whole_words
from app.errors import ModelUnavailable
from app.labels import Entity

ARCHITECTURE = "ForTokenClassification"


@dataclass(frozen=True, slots=True)
class Tagged:
    """What was found in a text."""

    entities: Sequence[Entity]
    """By offset; they do not overlap."""
    n_tokens: int
    """Of the whole text, special tokens of one window included."""
    n_windows: int
    unknown_share: float
    """Of its tokens, 0..1."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text as the model reads it."""

    pieces: Pieces
    """Without special tokens."""
    words: Ids
    """(t,), number of each token's word."""
    windows: Sequence[Window]
    segments: Ids | None
    """(t,), where the model is told capitals by them."""


class Tagger:
    """Safe to call from any thread. A text of any length is read in windows; none of it is cut.

    Raises:
        ModelUnavailable: the model does not classify tokens.
    """

    def __init__(self, files: HeadFiles, runner: Runner, tokenizer: Tokenizer) -> None:
        if not files.architecture.endswith(ARCHITECTURE):
            raise ModelUnavailable(f"{files.name} is a {files.architecture}, not a model {ARCHITECTURE}")
        self._files = files
        self._runner = runner
        self._tokenizer = tokenizer
        self._labels = tuple(files.labels)
        self._follows = iob2_follows(self._labels) if files.is_iob2 else None
        self._room = files.max_tokens - tokenizer.n_special

    @property
    def description(self) -> HeadDescription:
        return HeadDescription.of(self._files, self._runner)

    @property
    def fault(self) -> str | None:
        """Why it answers no more; None while it does."""
        return self._runner.fault

    @property
    def is_loaded(self) -> bool:
        return self._runner.is_loaded

    def load(self) -> float:
        """As `Runner.load`."""
        return self._runner.load()

    @property
    def activity(self) -> Activity:
        return self._runner.activity

    def tag(self, texts: Sequence[str], *, aggregation: Aggregation = "word") -> list[Tagged]:
        """
        Raises:
            Overloaded: too many other requests use the model.
        """
        readings = [self._read(text, aggregation) for text in texts]
        sequences = [self._sequence(r, window) for r in readings for window in r.windows]
        outputs = iter(self._runner.run(sequences))
        return [
            self._tagged(text, reading, [next(outputs)["logits"] for _ in reading.windows], aggregation)
            for text, reading in zip(texts, readings, strict=True)
        ]

    def close(self) -> None:
        self._runner.close()

    def _read(self, text: str, aggregation: Aggregation) -> _Reading:
        pieces = self._tokenizer.pieces(text).ordinary()
        words = pieces.words
        if aggregation == "word":
            words = whole_words(text, words, pieces.starts, pieces.ends)
        windows = token_windows(words, room=self._room) if len(pieces) else []
        has_segments = self._files.reads_capitals
        segments = capital_segments(text, pieces.starts, pieces.ends) if has_segments else None
        return _Reading(pieces, words, windows, segments)

    def _sequence(self, reading: _Reading, window: Window) -> TokenSequence:
        prefix, suffix = self._tokenizer.prefix, self._tokenizer.suffix
        own = slice(window.start, window.end)
        ids = np.concatenate([prefix, reading.pieces.ids[own], suffix])
        if reading.segments is None:
            return TokenSequence(ids)
        none = np.zeros(max(len(prefix), len(suffix)), dtype=np.int32)
        segments = [none[: len(prefix)], reading.segments[own], none[: len(suffix)]]
        return TokenSequence(ids, np.concatenate(segments))

    def _tagged(
        self, text: str, reading: _Reading, logits: Sequence[Array], aggregation: Aggregation
    ) -> Tagged:
        pieces = reading.pieces
        words = tagged_words(
            self._scores(len(pieces), reading.windows, logits),
            reading.words,
            pieces.starts,
            pieces.ends,
            labels=self._labels,
            aggregation=aggregation,
            follows=self._follows if aggregation == "word" else None,
        )
        found = entities(text, words)
        if aggregation == "word":
            found = [entity for entity in found if any(map(str.isalnum, entity.word))]
        return Tagged(
            found,
            n_tokens=len(pieces) + self._tokenizer.n_special,
            n_windows=len(reading.windows),
            unknown_share=pieces.unknown_share,
        )

    def _scores(self, n: int, windows: Sequence[Window], logits: Sequence[Array]) -> Scores:
        """(n, k) probabilities: of each token those of the window that owns it."""
        owned = np.zeros((n, len(self._labels)), dtype=np.float64)
        shift = len(self._tokenizer.prefix)
        for window, of_window in zip(windows, logits, strict=True):
            places = slice(window.owned_start - window.start + shift, window.owned_end - window.start + shift)
            owned[window.owned_start : window.owned_end] = of_window[places]
        return softmax(owned)
