"""A query as the index is asked with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.engine.embedder import Embeddings
from app.engine.inputs import is_blank
from app.errors import BlankText, TextTooLong
from app.services.candidates import Vector


@dataclass(frozen=True, slots=True)
class Query:
    vector: Vector | None  # (d,); None where the query was not encoded
    n_tokens: int
    truncated: bool = False
    n_windows: int = 1


def encoded_query(embeddings: Embeddings) -> Query:
    return Query(embeddings.vectors[0], int(embeddings.n_tokens[0]), bool(embeddings.truncated[0]))


def query_of_words(query: str) -> Query:
    """Raises BlankText."""
    if is_blank(query):
        raise BlankText("is blank: it needs at least one visible character", where=("query",))
    return Query(None, n_tokens=0, n_windows=0)


@contextmanager
def naming(field: str) -> Iterator[None]:
    """Refusals of the encoder speak of a list of texts; the caller sent one field."""
    try:
        yield
    except BlankText as error:
        raise BlankText("is blank: it needs at least one visible character", where=(field,)) from error
    except TextTooLong as error:
        raise TextTooLong(
            f"has {error.n_tokens} tokens, the model takes {error.max_tokens}; "
            "shorten it or allow truncation",
            n_tokens=error.n_tokens,
            max_tokens=error.max_tokens,
            where=(field,),
        ) from error
