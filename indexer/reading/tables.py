"""Tables into text: spreadsheets, CSV and TSV."""

import csv
import datetime as dt
import io
from collections.abc import Iterable, Sequence

import python_calamine

from app.domain import Document
from app.errors import BadFile
from indexer.reading.archives import OLE_SIGNATURE, checked_archive
from indexer.reading.pages import join_pages
from indexer.reading.records import TEXT_FIELDS, record_documents
from indexer.reading.text import decode

DELIMITERS = ",;\t|"
MAX_FIELD_CHARS = 2**24
Rows = Sequence[Sequence[str]]


def read_csv(name: str, body: bytes) -> list[Document]:
    """Under a header with a text column a document per row, as `record_documents` says; else one document.

    The first row is the header if none of its fields is empty, a number or there twice.
    """
    text = decode(body)
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(name, text))
        rows = [row for row in lines if any(row)]
    except csv.Error as error:
        raise BadFile(f"it is no table of comma- or tab-separated values ({error})") from error
    if rows and has_header(rows) and any(field.strip().lower() in TEXT_FIELDS for field in rows[0]):
        header = [field.strip() for field in rows[0]]
        records = (dict(zip(header, row, strict=False)) for row in rows[1:])
        return record_documents(name, records)
    return [Document(name, rows_text(rows))]


def read_sheets(name: str, body: bytes) -> list[Document]:
    """Sheets are pages: the sheet's name, then a line per row as `rows_text` says."""
    if not body.startswith(OLE_SIGNATURE):
        checked_archive(body)
    try:
        workbook = python_calamine.load_workbook(io.BytesIO(body))
    except python_calamine.PasswordError as error:
        raise BadFile("it is protected by a password; save it without one") from error
    pages = []
    for sheet_name in workbook.sheet_names:
        rows = _sheet_rows(workbook.get_sheet_by_name(sheet_name).to_python(skip_empty_area=True))
        pages.append(f"{sheet_name}\n\n{rows_text(rows)}" if rows else "")
    text, starts = join_pages(pages, are_separate=True)
    return [Document(name, text, page_starts=starts)]


def rows_text(rows: Rows) -> str:
    """A line per row. Under a header each value carries its column's name, so that every line tells all.

    >>> rows_text([["Name", "Age"], ["Ada", "36"], ["Alan", ""]])
    'Name: Ada; Age: 36\\nName: Alan'
    >>> rows_text([["Ada", "36"], ["Alan", "41"]])
    'Ada | 36\\nAlan | 41'
    """
    if len(rows) > 1 and has_header(rows):
        header = rows[0]
        lines: Iterable[str] = (
            "; ".join(
                f"{header[i].strip()}: {_line(value)}" if i < len(header) else _line(value)
                for i, value in enumerate(row)
                if value.strip()
            )
            for row in rows[1:]
        )
    else:
        lines = (" | ".join(_line(value) for value in row if value.strip()) for row in rows)
    return "\n".join(lines)


def has_header(rows: Rows) -> bool:
    names = [field.strip() for field in rows[0]]
    return len(set(names)) == len(names) and all(name and not _is_number(name) for name in names)


def _delimiter(name: str, text: str) -> str:
    """A tab in TSV files, else the one that the first line has most of."""
    if name.lower().endswith(".tsv"):
        return "\t"
    first_line = text.lstrip().partition("\n")[0]
    return max(DELIMITERS, key=first_line.count)


def _sheet_rows(cells: Sequence[Sequence[object]]) -> Rows:
    """Rows that are not empty, in the columns that are used."""
    rows = [[_cell_text(cell) for cell in row] for row in cells]
    rows = [row for row in rows if any(row)]
    used = [i for i in range(max(map(len, rows), default=0)) if any(row[i] for row in rows)]
    return [[row[i] for i in used] for row in rows]


def _cell_text(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return str(cell).strip()


def _line(value: str) -> str:
    return " ".join(value.split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
