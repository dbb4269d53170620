"""The file of a backup: a gzipped tar archive of two members, read without trusting any of it.

    manifest.json   what the other is: size, digest, schema, counts
    bifocal.db      the rows: documents, vectors, classifiers, settings, digests of keys, jobs

Index files are not in it: they are made from the rows. Nothing is ever written under a name from an archive.
"""

import gzip
import hashlib
import json
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from app.errors import BadFile, SchemaTooNew

MANIFEST, ROWS = "manifest.json", "bifocal.db"
KIND = "bifocal-backup"
FORMAT = 1
"""Raised when older versions would misread the file."""
MAX_MANIFEST_BYTES = 2**20
COMPRESSION = 1
"""The fastest of gzip: most of a store are vectors, which nothing makes smaller."""
BLOCK_BYTES = 2**20

Progress = Callable[[str, float], None]
"""Stage and share done, 0..1."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What an archive says of itself."""

    version: str
    """Of Bifocal, that made it."""
    created_at: str
    schema: int
    size_bytes: int
    """Of the rows' file."""
    sha256: str
    counts: Mapping[str, int]
    """Rows by table."""


def write_archive(path: Path, rows: Path, contents: Contents, progress: Progress) -> None:
    manifest = json.dumps({"kind": KIND, "format": FORMAT, **asdict(contents)}, indent=1).encode()
    with (
        tarfile.open(path, "w:gz", compresslevel=COMPRESSION, format=tarfile.PAX_FORMAT) as archive,
        rows.open("rb") as file,
    ):
        archive.addfile(_member(MANIFEST, len(manifest)), BytesIO(manifest))
        reader = _Reader(file, lambda n_bytes: progress("pack", n_bytes / contents.size_bytes))
        archive.addfile(_member(ROWS, contents.size_bytes), reader)  # type: ignore[arg-type]  # only read


def read_archive(path: Path, known_schema: int, rows: Path | None, progress: Progress) -> Contents:
    """Check every byte, and where `rows` are given write the rows' file there.

    Raises:
        BadFile: not a backup, or damaged, or cut.
        SchemaTooNew: a newer version made it.
    """
    with (
        _translated(path),
        gzip.open(path, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        contents = _contents(_content(archive, _next(archive, MANIFEST, path), path), path)
        if contents.schema > known_schema:
            raise SchemaTooNew(
                f"{path} has schema {contents.schema}, made by Bifocal {contents.version}; this version "
                f"knows up to {known_schema}: use the version that made it, or a newer one"
            )
        member = _next(archive, ROWS, path)
        if member.size != contents.size_bytes:
            raise BadFile(f"{path} is damaged: its rows are not as large as its manifest says")
        file = archive.extractfile(member)
        assert file is not None
        digest = _copied(file, rows, lambda n: progress("unpack", n / max(1, contents.size_bytes)))
        if digest != contents.sha256:
            raise BadFile(f"{path} is damaged: the digest of its rows is not that of its manifest")
        if archive.next() is not None:
            raise BadFile(f"{path} is not a backup of Bifocal: there is more in it than there should be")
        while stream.read(BLOCK_BYTES):  # at the end is the checksum of all, the manifest included
            pass
    return contents


def read_manifest(path: Path) -> Contents:
    """What the archive says of itself, unchecked. Raises as `read_archive`."""
    with (
        _translated(path),
        gzip.open(path, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        return _contents(_content(archive, _next(archive, MANIFEST, path), path), path)


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _member(name: str, size_bytes: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size_bytes
    member.mode = 0o600
    member.mtime = int(time.time())
    return member


def _next(archive: tarfile.TarFile, name: str, path: Path) -> tarfile.TarInfo:
    member = archive.next()
    if member is None or member.name != name or not member.isreg() or member.issparse():
        raise BadFile(f"{path} is not a backup of Bifocal: {name} is not where it should be")
    return member


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bytes:
    if member.size > MAX_MANIFEST_BYTES:
        raise BadFile(f"{path} is not a backup of Bifocal: its manifest is too large")
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _contents(manifest: bytes, path: Path) -> Contents:
    try:
        fields = json.loads(manifest)
        kind, format_ = fields.pop("kind"), fields.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise BadFile(f"{path} is not a backup of Bifocal: its manifest cannot be read") from error
    if kind != KIND or not isinstance(format_, int):
        raise BadFile(f"{path} is not a backup of Bifocal: its manifest is of something else")
    if format_ > FORMAT:
        raise SchemaTooNew(
            f"{path} is a backup of format {format_}, made by a newer version of Bifocal; this version knows "
            f"format {FORMAT}: use the version that made it, or a newer one"
        )
    try:
        contents = Contents(**fields)
        numbers = (contents.schema, contents.size_bytes, *contents.counts.values())
    except (TypeError, AttributeError) as error:
        raise BadFile(f"{path} is damaged: its manifest lacks something") from error
    if not all(isinstance(number, int) for number in numbers):
        raise BadFile(f"{path} is damaged: its manifest has no number where one should be")
    return contents


def _copied(source: IO[bytes], target: Path | None, progress: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    n_bytes = 0
    with _writing(target) as file:
        while block := source.read(BLOCK_BYTES):
            digest.update(block)
            n_bytes += len(block)
            if file is not None:
                file.write(block)
            progress(n_bytes)
    return digest.hexdigest()


@contextmanager
def _writing(target: Path | None) -> Iterator[IO[bytes] | None]:
    if target is None:
        yield None
        return
    with target.open("xb") as file:
        yield file


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise BadFile(f"{path} is not a backup of Bifocal, or is damaged or cut: {error}") from error
    except OSError as error:
        if error.errno is None:  # gzip's own
            raise BadFile(f"{path} is not a backup of Bifocal, or is damaged: {error}") from error
        raise


class _Reader:
    """A file that says how much of it was read."""

    def __init__(self, file: IO[bytes], progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress
        self._n_bytes = 0

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._n_bytes += len(block)
        self._progress(self._n_bytes)
        return block
