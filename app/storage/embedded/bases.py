"""The files of a published base: what lies in its folder, and opening it only if it is what was written.

    {collection key}/{view}-{number}/
        manifest.json           sizes and digests of the others; its own digest is the generation's checksum
        keys.i64                ascending
        document_keys.i64
        vectors.f16             (n, d), row i belongs to key i
        candidates.faiss        approximate bases only: position of a vector -> its quantised code

Files are little-endian. A folder never changes after it got its name.
"""

import errno
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import faiss
import numpy as np

from app.errors import StorageDamaged, StorageError
from app.storage.embedded.approximate import ApproximateSearch, MappedVectors
from app.storage.embedded.exact import ExactSearch
from app.storage.embedded.segments import Segment
from app.storage.embedded.selection import Selection
from app.storage.embedded.training import Quantiser
from app.storage.rows import Generation, Keys, Vectors

MANIFEST = "manifest.json"
KEYS = "keys.i64"
DOCUMENT_KEYS = "document_keys.i64"
VECTORS = "vectors.f16"
CANDIDATES = "candidates.faiss"

FORMAT = 1
"""Raised when older readers would misread the files."""


NO_DAMAGE = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Reasons for not reading a file that are no fault of the file."""


@dataclass(frozen=True, slots=True)
class File:
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Approximation:
    """How an approximate base is searched, chosen by measuring when it was built."""

    n_lists: int
    n_trained: int
    """Vectors in the base for which the quantiser was trained; later bases may have taken it over."""
    n_probes: int
    n_candidates: int
    recall_at_10: float
    recall_at_100: float


@dataclass(frozen=True, slots=True)
class Manifest:
    n_vectors: int
    dimensions: int
    kind: Literal["exact", "approximate"]
    approximation: Approximation | None
    built_at: str
    files: Mapping[str, File]
    format: int = FORMAT

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Manifest":
        fields = json.loads(content)
        fields["files"] = {name: File(**file) for name, file in fields["files"].items()}
        if fields["approximation"] is not None:
            fields["approximation"] = Approximation(**fields["approximation"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Base:
    generation: Generation
    segment: Segment | None
    """None if no vector was live."""
    size_bytes: int
    resident_bytes: int
    """About how much memory it takes; pages of mapped vectors excluded where they are let go."""


def folder_of(directory: Path, generation: Generation) -> Path:
    return directory / str(generation.collection_key) / f"{generation.view}-{generation.number}"


def open_base(folder: Path, generation: Generation) -> Base:
    """Raises:
    StorageDamaged: a file is missing or not what was published.
    StorageError: it cannot be read now, which says nothing about it: too many files are open, say.
    """
    with _translated(folder):
        manifest = _manifest(folder, generation)
        for name, file in manifest.files.items():
            _require_size(folder / name, file)
        return _base(folder, generation, manifest)


def damages(folder: Path, generation: Generation, *, max_bytes: float = math.inf) -> list[str]:
    """What is wrong with the files, every byte of those up to `max_bytes` read; empty if nothing is."""
    try:
        with _translated(folder):
            manifest = _manifest(folder, generation)
    except StorageDamaged as error:
        return [str(error)]
    found = []
    for name, file in manifest.files.items():
        try:
            with _translated(folder):
                _require_size(folder / name, file)
                if file.size_bytes <= max_bytes:
                    _require_digest(folder / name, file)
        except StorageDamaged as error:
            found.append(str(error))
    return found


def open_quantiser(folder: Path, generation: Generation) -> Quantiser | None:
    """That of a base, if it is approximate and intact."""
    try:
        with _translated(folder):
            manifest = _manifest(folder, generation)
            if manifest.approximation is None:
                return None
            _require_digest(folder / CANDIDATES, manifest.files[CANDIDATES])
            index = faiss.read_index(str(folder / CANDIDATES))
    except StorageDamaged:
        return None
    index.reset()
    return Quantiser(index, manifest.approximation.n_trained)


def published_keys(folder: Path) -> Keys:
    """Of a base whose files are intact, ascending; those deleted since are among them."""
    return np.fromfile(folder / KEYS, "<i8")


def published_vectors(folder: Path, *, n_vectors: int) -> Vectors:
    """(n, d), mapped: row i belongs to key i."""
    return np.memmap(folder / VECTORS, "<f2", mode="r").reshape(n_vectors, -1)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _base(folder: Path, generation: Generation, manifest: Manifest) -> Base:
    size_bytes = sum(file.size_bytes for file in manifest.files.values())
    if manifest.n_vectors == 0:
        return Base(generation, None, size_bytes, 0)
    keys = _keys(folder / KEYS, manifest)
    document_keys = _keys(folder / DOCUMENT_KEYS, manifest)
    mapped = MappedVectors(folder / VECTORS, n_vectors=manifest.n_vectors, dimensions=manifest.dimensions)
    search: ExactSearch | ApproximateSearch
    resident_bytes = size_bytes
    if manifest.approximation is None:
        _require_digest(folder / VECTORS, manifest.files[VECTORS])
        search = ExactSearch(mapped.all)
    else:
        # Reading gigabytes of vectors would delay the start: their digest is for `damages`.
        search = _approximate(folder, manifest, manifest.approximation, mapped)
        resident_bytes -= manifest.files[VECTORS].size_bytes
    segment = Segment(keys, document_keys, search, Selection.everything(manifest.n_vectors))
    return Base(generation, segment, size_bytes, resident_bytes)


def _approximate(
    folder: Path, manifest: Manifest, approximation: Approximation, mapped: MappedVectors
) -> ApproximateSearch:
    path = folder / CANDIDATES
    _require_digest(path, manifest.files[CANDIDATES])
    return ApproximateSearch(
        faiss.read_index(str(path)),
        mapped,
        n_probes=approximation.n_probes,
        n_candidates=approximation.n_candidates,
    )


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = StorageError if error.errno in NO_DAMAGE else StorageDamaged
        raise kind(f"{folder} cannot be read: {error}") from error
    except (RuntimeError, ValueError) as error:
        raise StorageDamaged(f"{folder} cannot be read: {error}") from error


def _manifest(folder: Path, generation: Generation) -> Manifest:
    content = (folder / MANIFEST).read_bytes()
    if hashlib.sha256(content).hexdigest() != generation.checksum:
        raise StorageDamaged(f"{folder / MANIFEST} is not what was published")
    format_ = json.loads(content).get("format")
    if format_ != FORMAT:
        raise StorageDamaged(f"{folder} has format {format_}, which this version cannot read")
    return Manifest.from_bytes(content)


def _require_size(path: Path, file: File) -> None:
    size_bytes = path.stat().st_size
    if size_bytes != file.size_bytes:
        raise StorageDamaged(f"{path} has {size_bytes} bytes, not {file.size_bytes}")


def _require_digest(path: Path, file: File) -> None:
    if digest(path) != file.sha256:
        raise StorageDamaged(f"{path} is not what was published: its digest differs")


def _keys(path: Path, manifest: Manifest) -> Keys:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != manifest.files[path.name].sha256:
        raise StorageDamaged(f"{path} is not what was published: its digest differs")
    return np.frombuffer(content, "<i8")
