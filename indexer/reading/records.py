"""Records into documents: JSON, JSON Lines and rows of tables that have a text field."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Never

from app.domain import Document, MetadataScalar, MetadataValue
from app.errors import BadFile
from indexer.reading.text import decode

TEXT_FIELDS = ("text", "content", "body")
ID_FIELDS = ("id", "_id")
TITLE_FIELD = "title"


def record_documents(name: str, records: Iterable[Mapping[str, Any]]) -> list[Document]:
    """One document per record.

    - text: of the first field there is of `text`, `content`, `body`; upper and lower case are the same;
    - id: `name#` and the record's `id` or `_id`, or else its number, counted from 1;
    - title: `title`;
    - metadata: all other fields with a value. Lists of plain values stay, deeper ones become JSON text.
    """
    return [_document(name, number, record) for number, record in enumerate(records, start=1)]


def read_jsonl(name: str, body: bytes) -> list[Document]:
    """A document per line, which must be a JSON object with a text field; blank lines are passed over."""
    return record_documents(name, _objects(decode(body)))


def read_json(name: str, body: bytes) -> list[Document]:
    """One document per object of a list, or of a list under `documents`, if all have a text field.

    Else one document: the JSON as it is.
    """
    text = decode(body)
    loaded = _parsed(text, where="")
    if isinstance(loaded, dict) and isinstance(loaded.get("documents"), list):
        loaded = loaded["documents"]
    if isinstance(loaded, list) and loaded and all(isinstance(r, dict) and text_field(r) for r in loaded):
        return record_documents(name, loaded)
    return [Document(name, text)]


def text_field(record: Mapping[str, Any]) -> str | None:
    """Name of the field that holds the record's text."""
    return _field(record, TEXT_FIELDS)


def _field(record: Mapping[str, Any], names: Iterable[str]) -> str | None:
    by_lower = {key.lower(): key for key in reversed(list(record))}
    return next((by_lower[name] for name in names if name in by_lower), None)


def _document(name: str, number: int, record: Mapping[str, Any]) -> Document:
    text_key, id_key, title_key = text_field(record), _field(record, ID_FIELDS), _field(record, [TITLE_FIELD])
    if text_key is None or not isinstance(record[text_key], str):
        raise BadFile(f"record {number} has no text; it needs a field {', '.join(TEXT_FIELDS)} with a string")
    own_id = record[id_key] if id_key is not None else None
    title = record[title_key] if title_key is not None else None
    return Document(
        f"{name}#{number if own_id is None or own_id == '' else own_id}",
        record[text_key],
        title=str(title).strip() or None if title is not None else None,
        metadata={
            key: _metadata_value(value)
            for key, value in record.items()
            if key not in (text_key, id_key, title_key) and value is not None and value != ""
        },
    )


def _metadata_value(value: object) -> MetadataValue:
    if _is_plain(value):
        return value  # type: ignore[return-value]
    if isinstance(value, list) and all(_is_plain(v) for v in value):
        return list[MetadataScalar](value)
    return json.dumps(value, ensure_ascii=False)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        loaded = _parsed(line, where=f"line {number}: ")
        if not isinstance(loaded, dict):
            raise BadFile(f"line {number}: not a JSON object; allowed is one object per line")
        yield loaded


def _parsed(text: str, *, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refused_constant)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{where}not valid JSON ({error})") from error


def _refused_constant(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON number")
