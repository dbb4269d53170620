"""`bifocal ingest`: files of this machine into a collection, through the same jobs as every other write."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.domain import Collection, Job, JobInput, JobKind, Outcome, OutcomeStatus
from app.errors import JobFinished, NotFound
from app.settings import Settings
from app.storage.rows import Rows
from indexer.documents import MAX_ID_BYTES

BATCH_FILES = 200
BATCH_BYTES = 16 * 2**20
"""Of one job: what an interruption may leave queued, and how often there is progress to show."""
JOBS_AHEAD = 2
"""Submitted beyond the one being worked off, so that the worker never waits for the disk."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    path: Path
    document_id: str
    """The path relative to the folder that was given, with forward slashes on every system."""
    size_bytes: int


@dataclass
class Report:
    """What has happened so far."""

    counts: dict[OutcomeStatus, int] = field(default_factory=dict)
    n_passages: int = 0
    """New ones; those of unchanged documents cost nothing and do not count."""
    n_bytes_done: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)
    """(document id, message), in order."""
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def add(self, outcome: Outcome, name: str) -> None:
        self.counts[outcome.status] = self.counts.get(outcome.status, 0) + 1
        if outcome.status in (OutcomeStatus.CREATED, OutcomeStatus.UPDATED):
            self.n_passages += outcome.n_passages
        if outcome.status is OutcomeStatus.REJECTED:
            self.errors.append((name, (outcome.error or "rejected").removeprefix(f"{name}: ")))
        self.warnings += [(name, warning) for warning in outcome.warnings]

    def refuse(self, name: str, message: str) -> None:
        self.counts[OutcomeStatus.REJECTED] = self.counts.get(OutcomeStatus.REJECTED, 0) + 1
        self.errors.append((name, message))


def find_files(paths: Sequence[str], suffixes: frozenset[str]) -> tuple[list[SourceFile], int]:
    """Files under these paths, in order of their ids, and how many others were passed over.

    A file is taken whatever its type; a folder gives its files of known types, hidden ones left out; a
    pattern (`*`, `?`, `[`, `**`) that is no path gives what it matches. Ids are relative to the folder
    given, or to the pattern's folder without wildcards; a file's id is its name.

    Raises:
        FileNotFoundError: a path is not there, or a pattern matches nothing.
        ValueError: two files would have the same id, or an id is too long.
    """
    found: dict[str, SourceFile] = {}
    n_passed_over = 0
    for path in paths:
        for file, root, is_named in _expand(path):
            if not is_named and file.suffix.lower() not in suffixes:
                n_passed_over += 1
                continue
            source = SourceFile(file, file.relative_to(root).as_posix(), file.stat().st_size)
            _require_distinct(found.get(source.document_id), source)
            found[source.document_id] = source
    return [found[document_id] for document_id in sorted(found)], n_passed_over


def _expand(path: str) -> Iterator[tuple[Path, Path, bool]]:
    """(file, root of its id, whether it was named itself)."""
    given = Path(path)
    if given.is_dir():
        yield from ((file, given, False) for file in _files_of(given))
    elif given.exists():
        yield given, given.parent, True
    elif glob.has_magic(path):
        root = _root_of_pattern(given)
        matches = [Path(match) for match in glob.glob(path, recursive=True)]  # noqa: PTH207 - absolute patterns
        if not matches:
            raise FileNotFoundError(f"no file matches {path}")
        for match in matches:
            if match.is_file():
                yield match, root, True
    else:
        raise FileNotFoundError(f"there is no file or folder {path}")


def _files_of(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if not is_hidden and file.is_file():
            yield file


def _root_of_pattern(pattern: Path) -> Path:
    first = next(i for i, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:first])


def _require_distinct(before: SourceFile | None, source: SourceFile) -> None:
    if before is not None and before.path.resolve() != source.path.resolve():
        raise ValueError(
            f"{before.path} and {source.path} would both have the id {source.document_id!r}; "
            "give the folder above both instead"
        )
    if len(source.document_id.encode(errors="surrogateescape")) > MAX_ID_BYTES:
        raise ValueError(f"{source.path}: its id would have more than {MAX_ID_BYTES} bytes")


def batches(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """In order, each of at most BATCH_FILES files and, beyond its first file, BATCH_BYTES."""
    batch: list[SourceFile] = []
    n_bytes = 0
    for file in files:
        if batch and (len(batch) >= BATCH_FILES or n_bytes + file.size_bytes > BATCH_BYTES):
            yield batch
            batch, n_bytes = [], 0
        batch.append(file)
        n_bytes += file.size_bytes
    if batch:
        yield batch


@dataclass
class _Submitted:
    job: Job
    files: Sequence[SourceFile]
    """By ordinal."""
    n_seen: int = 0


class FileIngest:
    """Submits files in batches and follows their jobs; `step` until `is_done`."""

    def __init__(
        self, rows: Rows, collection: Collection, files: Sequence[SourceFile], *, settings: Settings
    ) -> None:
        self._rows = rows
        self._collection = collection
        self._batches = batches(files)
        self._open: list[_Submitted] = []
        self._max_bytes = settings.max_body_bytes
        self._is_all_submitted = False
        self.is_cancelled = False
        self.n_bytes = sum(file.size_bytes for file in files)
        self.report = Report()

    @property
    def is_done(self) -> bool:
        return self._is_all_submitted and not self._open

    def step(self) -> None:
        """Submit what may be submitted, and read what has been done."""
        while len(self._open) <= JOBS_AHEAD and not self._is_all_submitted:
            self._submit_next()
        for submitted in list(self._open):
            self._follow(submitted)

    def cancel(self) -> None:
        """Call off what is not done yet; what is done stays."""
        for submitted in self._open:
            try:
                self._rows.cancel_job(submitted.job.id)
            except (JobFinished, NotFound):
                continue
        self._open.clear()
        self._is_all_submitted = self.is_cancelled = True

    def _submit_next(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            self._is_all_submitted = True
            return
        inputs: list[JobInput] = []
        files: list[SourceFile] = []
        for file in batch:
            body = self._read(file)
            if body is not None:
                inputs.append(JobInput(len(files), body, name=file.document_id))
                files.append(file)
        if inputs:
            job = self._rows.submit_job(self._collection.key, JobKind.FILES, inputs)
            self._open.append(_Submitted(job, files))

    def _read(self, file: SourceFile) -> bytes | None:
        try:
            file.document_id.encode()
            if file.size_bytes <= self._max_bytes:
                return file.path.read_bytes()
            refusal = (
                f"has {file.size_bytes} bytes; at most {self._max_bytes} are allowed (BIFOCAL_MAX_BODY_BYTES)"
            )
        except UnicodeEncodeError:
            refusal = "its name is not UTF-8"
        except OSError as error:
            refusal = error.strerror or str(error)
        self.report.refuse(file.document_id, refusal)
        self.report.n_bytes_done += file.size_bytes
        return None

    def _follow(self, submitted: _Submitted) -> None:
        job = self._rows.job(submitted.job.id)
        while outcomes := self._rows.outcomes(job.id, after=submitted.n_seen - 1):
            for outcome in outcomes:
                file = submitted.files[outcome.ordinal]
                self.report.add(outcome, file.document_id)
                self.report.n_bytes_done += file.size_bytes
            submitted.n_seen += len(outcomes)
        if job.state.is_final:
            self._open.remove(submitted)
            for file in submitted.files[submitted.n_seen :]:
                self.report.refuse(file.document_id, job.error or f"its job was {job.state.value}")
