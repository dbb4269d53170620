"""Which kinds of file can be read, and how a file's kind is told."""

from pathlib import PurePosixPath

from app.errors import BadFile

SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "sheets",
    ".xlsm": "sheets",
    ".xls": "sheets",
    ".ods": "sheets",
    ".epub": "epub",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
"""Kind of file by lower-case end of its name."""
OFFICE = "application/vnd.openxmlformats-officedocument."
MEDIA_TYPES = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    f"{OFFICE}wordprocessingml.document": "docx",
    f"{OFFICE}presentationml.presentation": "pptx",
    f"{OFFICE}spreadsheetml.sheet": "sheets",
    "application/vnd.ms-excel": "sheets",
    "application/vnd.oasis.opendocument.spreadsheet": "sheets",
    "application/epub+zip": "epub",
    "text/csv": "csv",
    "text/tab-separated-values": "csv",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
}


def kind_of(name: str, media_type: str | None) -> str:
    """Kind of a file by its name, or by the media type where the name tells nothing.

    Raises:
        BadFile: neither is known; the message lists the ends of names that are.
    """
    suffix = PurePosixPath(name).suffix.lower()
    kind = SUFFIXES.get(suffix) or MEDIA_TYPES.get((media_type or "").split(";")[0].strip().lower())
    if kind is None:
        found = f"files ending in {suffix!r}" if suffix else "files without an ending such as .pdf"
        raise BadFile(f"{found} cannot be read; allowed are {', '.join(SUFFIXES)}")
    return kind
