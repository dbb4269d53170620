"""Labelled examples out of a request's body: JSON, JSON lines or a table with a header."""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from app.api.bodies import parse_json
from app.api.schemas.classifiers import ExampleInput, TrainingRequest
from app.errors import BadExamples
from app.labels import Example
from app.services.examples import MAX_EXAMPLES

JSON, NDJSON, CSV, TSV = "application/json", "application/x-ndjson", "text/csv", "text/tab-separated-values"
DELIMITERS: Mapping[str, str] = {CSV: ",", TSV: "\t"}
SEPARATOR = "|"
"""Between labels of one cell, in a column named `labels`."""

Schema = TypeVar("Schema", bound=BaseModel)


def read_examples(body: IO[bytes], media_type: str) -> Sequence[Example]:
    """
    Raises:
        HTTPException: 400 for what cannot be read.
        RequestValidationError, BadExamples: naming the example.
    """
    if media_type == JSON:
        request = _validated(TrainingRequest, parse_json(body.read()))
        return [each.example() for each in request.examples]
    read = _lines(body) if media_type == NDJSON else _table(body, DELIMITERS[media_type])
    examples = list(itertools.islice(read, MAX_EXAMPLES + 1))
    if len(examples) > MAX_EXAMPLES:
        raise BadExamples(
            f"more than {MAX_EXAMPLES} examples; at most so many are allowed", where=("examples",)
        )
    return examples


def _lines(body: IO[bytes]) -> Iterator[Example]:
    numbered = ((number, line.strip()) for number, line in enumerate(body, start=1))
    for ordinal, (number, line) in enumerate((number, line) for number, line in numbered if line):
        try:
            parsed = parse_json(line)
        except HTTPException as error:
            raise HTTPException(error.status_code, f"line {number} of the body: {error.detail}") from error
        yield _validated(ExampleInput, parsed, "examples", ordinal).example()


def _table(body: IO[bytes], delimiter: str) -> Iterator[Example]:
    try:
        text = body.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8: byte {error.start} is invalid") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise HTTPException(400, f"line {reader.line_num} of the body: {error}") from error
    header = [name.strip().lower() for name in rows[0][1]] if rows else []
    if sorted(header) not in (["label", "text"], ["labels", "text"]):
        raise HTTPException(
            400, "the first line must name the columns: text and label, or text and labels (separated by |)"
        )
    for ordinal, (number, row) in enumerate(rows[1:]):
        if len(row) != len(header):
            raise HTTPException(400, f"line {number} of the body has {len(row)} columns, the first has 2")
        cells = _cells(dict(zip(header, row, strict=True)))
        yield _validated(ExampleInput, cells, "examples", ordinal).example()


def _cells(row: Mapping[str, str]) -> Mapping[str, object]:
    """An empty cell is no label."""
    if "label" in row:
        return {"text": row["text"], "label": row["label"] or None}
    return {
        "text": row["text"],
        "labels": [each.strip() for each in row["labels"].split(SEPARATOR) if each.strip()],
    }


def _validated(schema: type[Schema], parsed: object, *where: str | int) -> Schema:
    try:
        return schema.model_validate(parsed)
    except ValidationError as error:
        located = [{**each, "loc": ("body", *where, *each["loc"])} for each in error.errors()]
        raise RequestValidationError(located) from error
