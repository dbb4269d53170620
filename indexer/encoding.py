"""From documents to what the rows store: passages, their vectors, and one vector for the whole."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain import Document, Passage, SplitterSettings
from app.domain.contents import content_hash
from app.engine.document_vectors import document_vector
from app.engine.embedder import Embedder
from app.engine.tokenizer import Tokenizer
from app.errors import BlankText, InvalidInput
from app.storage.rows import EncodedDocument
from indexer.readability import readability_warnings
from indexer.splitting import split

Embedded = NDArray[np.float32]

PASSAGES_PER_CALL = 256
"""Enough to keep the model busy, few enough to notice a stop within two or three seconds."""


class Stopped(Exception):
    """Work was given up between two steps because someone asked to; nothing is wrong."""


@dataclass(frozen=True, slots=True)
class SplitDocument:
    document: Document
    content_hash: bytes
    passages: Sequence[Passage]
    n_tokens: int
    unknown_share: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    change: EncodedDocument
    warnings: tuple[str, ...]
    """Signs that the model cannot make sense of the text."""


class DocumentEncoder:
    """Splits and encodes documents with one model.

    Args:
        embedder: makes the vectors.
        tokenizer: that model's own.
        document_prompt: what the embedder puts before every text, within its limit of tokens.
    """

    def __init__(self, embedder: Embedder, tokenizer: Tokenizer, *, document_prompt: str = "") -> None:
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._max_tokens = embedder.description.max_tokens - tokenizer.count(document_prompt)

    @property
    def fingerprint(self) -> str:
        return self._embedder.description.fingerprint

    @property
    def model(self) -> str:
        return self._embedder.description.name

    def content_hash(self, document: Document, splitter: SplitterSettings) -> bytes:
        return content_hash(document, splitter, fingerprint=self.fingerprint)

    def split(self, document: Document, splitter: SplitterSettings) -> SplitDocument:
        """Raises BlankText: there is nothing to see in it, although it is not all white space."""
        tokens = self._tokenizer.tokenize(document.text)
        passages = split(
            document, tokens, tokenizer=self._tokenizer, settings=splitter, max_tokens=self._max_tokens
        )
        if not passages:
            raise BlankText("has no visible character", where=("text",))
        return SplitDocument(
            document=document,
            content_hash=self.content_hash(document, splitter),
            passages=passages,
            n_tokens=len(tokens),
            unknown_share=float(tokens.unknown.mean()) if len(tokens) else 0.0,
            warnings=readability_warnings(tokens, document.text),
        )

    def encode(
        self, splits: Sequence[SplitDocument], should_stop: Callable[[], bool] = lambda: False
    ) -> list[Encoded | InvalidInput]:
        """Each document encoded, in order, or why the model cannot take it.

        Raises:
            Stopped: `should_stop` said so between two calls of the model.
        """
        try:
            return self._encode(splits, should_stop)
        except InvalidInput as error:
            if len(splits) == 1:
                return [error]
        return [outcome for each in splits for outcome in self.encode([each], should_stop)]

    def _encode(
        self, splits: Sequence[SplitDocument], should_stop: Callable[[], bool]
    ) -> list[Encoded | InvalidInput]:
        texts = [s.document.text[p.start : p.end] for s in splits for p in s.passages]
        titles = [s.document.title for s in splits for _ in s.passages]
        n_tokens = np.array([p.n_tokens for s in splits for p in s.passages], dtype=np.int64)
        vectors, truncated = self._vectors(texts, titles, n_tokens, should_stop)  # (n, d), (n,)
        encoded: list[Encoded | InvalidInput] = []
        start = 0
        for s in splits:
            own = slice(start, start + len(s.passages))
            start = own.stop
            change = EncodedDocument(
                document=s.document,
                content_hash=s.content_hash,
                passages=s.passages,
                passage_vectors=vectors[own].astype(np.float16),
                document_vector=document_vector(vectors[own], n_tokens[own]).astype(np.float16),
                n_tokens=s.n_tokens,
                unknown_share=s.unknown_share,
            )
            encoded.append(Encoded(change, (*s.warnings, *_cut_warning(int(truncated[own].sum())))))
        return encoded

    def _vectors(
        self,
        texts: Sequence[str],
        titles: Sequence[str | None],
        n_tokens: NDArray[np.int64],
        should_stop: Callable[[], bool],
    ) -> tuple[Embedded, NDArray[np.bool_]]:
        """Encode the longest first, so that texts of one length share a call and padding is rare."""
        order = np.argsort(-n_tokens, kind="stable")
        truncated = np.zeros(len(texts), dtype=np.bool_)
        vectors = np.empty((len(texts), self._embedder.description.dimensions), dtype=np.float32)
        for start in range(0, len(texts), PASSAGES_PER_CALL):
            if should_stop():
                raise Stopped
            chosen = order[start : start + PASSAGES_PER_CALL]
            embeddings = self._embedder.encode_documents(
                [texts[i] for i in chosen], titles=[titles[i] for i in chosen]
            )
            vectors[chosen] = embeddings.vectors
            truncated[chosen] = embeddings.truncated
        return vectors, truncated


def encoder_of(
    fingerprint: str, first: DocumentEncoder, second: DocumentEncoder | None
) -> DocumentEncoder | None:
    """The one whose vectors have this fingerprint."""
    running = (first,) if second is None else (first, second)
    return next((each for each in running if each.fingerprint == fingerprint), None)


def _cut_warning(n_cut: int) -> tuple[str, ...]:
    if not n_cut:
        return ()
    return (f"the ends of {n_cut} passages are beyond what the model takes and do not count in the search",)
