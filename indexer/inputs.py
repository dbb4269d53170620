"""The inputs of a job, read into parts: one document, one id to delete, or one refusal each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.domain import Document, Job, JobInput, JobKind
from app.errors import BadFile, InvalidInput
from app.settings import Settings
from app.storage.rows import Rows
from indexer.documents import check_document, describe, id_if_any, parse_document, parse_id

INPUTS_PER_READ = 64
"""Fetched from the rows at a time."""

ReadFile = Callable[[JobInput], Sequence[Document]]
"""One file to its documents; raises BadFile where there are none."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document, or a refusal if `error` is set, or else a deletion."""

    ordinal: int
    """Of the input."""
    document_id: str | None
    """None where a refused input has none that could be read."""
    document: Document | None = None
    error: str | None = None
    name: str | None = None
    """Of the file."""
    is_last: bool = True
    """Of its input; only files have more than one part."""

    @classmethod
    def refused(cls, source: JobInput, error: str, *, document_id: str | None = None) -> "Part":
        return cls(source.ordinal, document_id or source.name, error=error, name=source.name)

    @property
    def n_chars(self) -> int:
        return 0 if self.document is None else len(self.document.text)


class InputReader:
    """Reads the inputs of a job in their order; what cannot be read becomes a refusal."""

    def __init__(self, settings: Settings, read_file: ReadFile) -> None:
        self._max_chars = settings.max_document_chars
        self._read_file = read_file

    def read(self, rows: Rows, job: Job, *, start: int) -> Iterator[Part]:
        read_one = {
            JobKind.DOCUMENTS: self._document,
            JobKind.DELETE: self._deletion,
            JobKind.FILES: self._file,
        }[job.kind]
        while inputs := rows.job_inputs(job.id, start=start, limit=INPUTS_PER_READ):
            for source in inputs:
                yield from read_one(source)
            start = inputs[-1].ordinal + 1

    def _document(self, source: JobInput) -> Iterator[Part]:
        try:
            document = parse_document(source.body, max_chars=self._max_chars)
        except InvalidInput as error:
            yield Part.refused(source, describe(error), document_id=id_if_any(source.body))
        else:
            yield Part(source.ordinal, document.id, document)

    def _deletion(self, source: JobInput) -> Iterator[Part]:
        try:
            yield Part(source.ordinal, parse_id(source.body))
        except InvalidInput as error:
            yield Part.refused(source, describe(error))

    def _file(self, source: JobInput) -> Iterator[Part]:
        try:
            documents = self._read_file(source)
        except BadFile as error:
            yield Part.refused(source, describe(error))
            return
        for i, document in enumerate(documents):
            yield self._file_part(source, document, is_last=i == len(documents) - 1)

    def _file_part(self, source: JobInput, document: Document, *, is_last: bool) -> Part:
        try:
            check_document(document, max_chars=self._max_chars)
        except InvalidInput as error:
            message = f"{document.id}: {describe(error)}"
            return Part(source.ordinal, document.id, error=message, name=source.name, is_last=is_last)
        return Part(source.ordinal, document.id, document, name=source.name, is_last=is_last)
