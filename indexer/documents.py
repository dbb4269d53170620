"""From the JSON of one input to a `Document`, or to an error that its sender can act on."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.domain import Document, Metadata, MetadataScalar
from app.errors import BadDocument, BlankText, InvalidInput

FIELDS = ("id", "text", "title", "metadata")
MAX_ID_BYTES = 512
MAX_TITLE_CHARS = 1_000
MAX_METADATA_FIELDS = 100
MAX_METADATA_BYTES = 32_768
MAX_FIELD_NAME_BYTES = 128
INTEGERS = range(-(2**63), 2**63)
"""What every store behind the rows can keep and compare as a number."""


def parse_document(body: bytes, *, max_chars: int) -> Document:
    """Read one JSON object with `id`, `text` and optionally `title` and `metadata`.

    Raises:
        BadDocument, BlankText: `where` is the path of the offending part inside the object.
    """
    fields = _parse_json(body)
    if not isinstance(fields, dict):
        raise BadDocument(f"a document is a JSON object, this is {_kind(fields)}")
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise BadDocument(
            f"unknown field {_shown(unknown[0])}; allowed are {', '.join(FIELDS)}", where=(unknown[0],)
        )
    document = Document(
        id=fields.get("id"),  # type: ignore[arg-type]  # checked by check_document
        text=fields.get("text"),  # type: ignore[arg-type]
        title=fields.get("title"),
        metadata={} if fields.get("metadata") is None else fields["metadata"],
    )
    check_document(document, max_chars=max_chars)
    return document


def parse_id(body: bytes) -> str:
    """Read one JSON string, the id of a document to delete. Raises BadDocument."""
    document_id = _parse_json(body)
    _check_id(document_id)
    return str(document_id)


def id_if_any(body: bytes) -> str | None:
    """The id of a document that was refused for something else, to name it in the outcome."""
    try:
        fields = _parse_json(body)
        document_id = fields.get("id") if isinstance(fields, dict) else None
        _check_id(document_id)
    except InvalidInput:
        return None
    return str(document_id)


def check_document(document: Document, *, max_chars: int) -> None:
    """Check types and limits of every field.

    Raises:
        BadDocument, BlankText: `where` is the path of the offending part inside the document.
    """
    _check_id(document.id)
    _check_text(document.text, max_chars=max_chars)
    _check_title(document.title)
    _check_metadata(document.metadata)


def describe(error: InvalidInput) -> str:
    """The message with the place it speaks of, for the outcome of an input."""
    return f"{'.'.join(str(step) for step in error.where)}: {error}" if error.where else str(error)


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise BadDocument("the JSON is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadDocument(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise BadDocument("the JSON is nested too deeply; metadata is flat") from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise BadDocument("the JSON has a number that is too long; 64-bit integers are allowed") from error


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise BadDocument(f"the field {_shown(twice)} is there twice", where=(twice,))
    return fields


def _refuse_constant(name: str) -> Any:
    raise BadDocument(f"{name} is not JSON; finite numbers are allowed")


def _check_id(document_id: object) -> None:
    allowed = f"a string of 1 to {MAX_ID_BYTES} bytes in UTF-8"
    if not isinstance(document_id, str):
        raise BadDocument(f"must be {allowed}, is {_kind(document_id)}", where=("id",))
    n_bytes = len(_utf8(document_id, where=("id",)))
    if not 1 <= n_bytes <= MAX_ID_BYTES:
        raise BadDocument(f"must be {allowed}, has {n_bytes}", where=("id",))


def _check_text(text: object, *, max_chars: int) -> None:
    if not isinstance(text, str):
        raise BadDocument(f"must be a string, is {_kind(text)}", where=("text",))
    if len(text) > max_chars:
        raise BadDocument(f"has {len(text)} characters; at most {max_chars} are allowed", where=("text",))
    _utf8(text, where=("text",))
    if not text or text.isspace():
        raise BlankText("is empty or only white space", where=("text",))


def _check_title(title: object) -> None:
    if title is None:
        return
    if not isinstance(title, str):
        raise BadDocument(f"must be a string or null, is {_kind(title)}", where=("title",))
    if len(title) > MAX_TITLE_CHARS:
        raise BadDocument(
            f"has {len(title)} characters; at most {MAX_TITLE_CHARS} are allowed", where=("title",)
        )
    _utf8(title, where=("title",))


def _check_metadata(metadata: Metadata) -> None:
    """Flat: each value is a string, number, boolean or null, or a list of these."""
    if not isinstance(metadata, dict):
        raise BadDocument(f"must be an object, is {_kind(metadata)}", where=("metadata",))
    if len(metadata) > MAX_METADATA_FIELDS:
        raise BadDocument(
            f"has {len(metadata)} fields; at most {MAX_METADATA_FIELDS} are allowed", where=("metadata",)
        )
    n_bytes = sum(_metadata_bytes(name, value) for name, value in metadata.items())
    if n_bytes > MAX_METADATA_BYTES:
        raise BadDocument(
            f"has {n_bytes} bytes of names and values; at most {MAX_METADATA_BYTES} are allowed",
            where=("metadata",),
        )


def _metadata_bytes(name: object, value: object) -> int:
    """Size of one checked field: its name and strings in UTF-8, and eight bytes per other value."""
    if not isinstance(name, str):
        raise BadDocument(f"names are strings, this is {_kind(name)}", where=("metadata",))
    where = ("metadata", name)
    n_name = len(_utf8(name, where=("metadata",)))
    if not 1 <= n_name <= MAX_FIELD_NAME_BYTES:
        raise BadDocument(
            f"a name has {n_name} bytes; 1 to {MAX_FIELD_NAME_BYTES} are allowed", where=("metadata",)
        )
    if isinstance(value, list | tuple):
        return n_name + sum(_scalar_bytes(each, where=(*where, i)) for i, each in enumerate(value))
    return n_name + _scalar_bytes(value, where=where)


def _scalar_bytes(value: object, *, where: tuple[str | int, ...]) -> int:
    if isinstance(value, str):
        return len(_utf8(value, where=where))
    if isinstance(value, float) and not math.isfinite(value):
        raise BadDocument("is not finite", where=where)
    if isinstance(value, int) and value not in INTEGERS:
        raise BadDocument("is beyond 64 bits", where=where)
    if not isinstance(value, MetadataScalar):
        raise BadDocument(
            f"is {_kind(value)}; a string, number, boolean, null or a list of these is allowed", where=where
        )
    return 8


def _utf8(text: str, *, where: tuple[str | int, ...]) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadDocument(
            f"has half a surrogate pair at character {error.start}; whole Unicode characters are allowed",
            where=where,
        ) from error


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 60 else name[:60] + "...")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "missing"}
    return names.get(type(value), "a number")
