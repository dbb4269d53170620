"""Making the files of a base from the rows, in blocks: memory does not grow with the collection."""

import datetime as dt
import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np

from app.domain import View
from app.errors import StorageError, StorageFull
from app.storage.embedded import tuning
from app.storage.embedded.approximate import MappedVectors
from app.storage.embedded.bases import (
    CANDIDATES,
    DOCUMENT_KEYS,
    KEYS,
    MANIFEST,
    VECTORS,
    Approximation,
    File,
    Manifest,
    digest,
)
from app.storage.embedded.training import Quantiser, train
from app.storage.free_space import is_disk_full
from app.storage.rows import Rows, VectorBlock

Progress = Callable[[str, float], None]

ADD_BLOCK = 65_536

SMALLEST_APPROXIMATE = 1_000
"""Vectors; with fewer there is nothing to gain and too little to train with."""


def build(
    folder: Path,
    rows: Rows,
    collection_key: int,
    view: View,
    *,
    max_key: int,
    n_expected: int,
    exact_limit: int,
    quantiser: Quantiser | None,
    progress: Progress,
) -> Manifest:
    """Write and fsync all files of a base with the live vectors up to `max_key`.

    `quantiser` is that of the base before; it is taken over if it still fits.
    """
    columns = Columns(folder)
    with columns:
        for block in rows.vectors_after(collection_key, view, 0, up_to=max_key):
            columns.write(block)
            progress("read", min(1.0, columns.n_vectors / max(1, n_expected)))
    files = columns.files()
    approximation = None
    if columns.n_vectors > max(exact_limit, SMALLEST_APPROXIMATE):
        mapped = MappedVectors(folder / VECTORS, n_vectors=columns.n_vectors, dimensions=columns.dimensions)
        approximation = _approximate(folder / CANDIDATES, mapped, quantiser, progress)
        files[CANDIDATES] = File((folder / CANDIDATES).stat().st_size, digest(folder / CANDIDATES))
    manifest = Manifest(
        n_vectors=columns.n_vectors,
        dimensions=columns.dimensions,
        kind="exact" if approximation is None else "approximate",
        approximation=approximation,
        built_at=dt.datetime.now(dt.UTC).isoformat(),
        files=files,
    )
    (folder / MANIFEST).write_bytes(manifest.to_bytes())
    for name in (*files, MANIFEST):
        sync(folder / name)
    sync(folder)
    return manifest


def sync(path: Path) -> None:
    """Make a file or the names in a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Columns:
    """The three arrays of a base, written side by side."""

    def __init__(self, folder: Path) -> None:
        names = (KEYS, DOCUMENT_KEYS, VECTORS)
        self._files = {name: (folder / name).open("wb") for name in names}
        self._digests = {name: hashlib.sha256() for name in names}
        self.n_vectors = 0
        self.dimensions = 0

    def __enter__(self) -> "Columns":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def write(self, block: VectorBlock) -> None:
        self._append(KEYS, block.keys.astype("<i8", copy=False).tobytes())
        self._append(DOCUMENT_KEYS, block.document_keys.astype("<i8", copy=False).tobytes())
        self._append(VECTORS, block.vectors.astype("<f2", copy=False).tobytes())
        self.n_vectors += len(block.keys)
        self.dimensions = block.vectors.shape[1]

    def files(self) -> dict[str, File]:
        return {
            name: File(Path(file.name).stat().st_size, self._digests[name].hexdigest())
            for name, file in self._files.items()
        }

    def _append(self, name: str, content: bytes) -> None:
        self._files[name].write(content)
        self._digests[name].update(content)


def _approximate(
    path: Path, mapped: MappedVectors, quantiser: Quantiser | None, progress: Progress
) -> Approximation:
    # Nobody else waits for this thread: it may use all cores. The setting is the calling thread's.
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    n_vectors = len(mapped.all)
    if quantiser is None or not quantiser.fits(n_vectors):
        quantiser = train(mapped, lambda share: progress("train", share))
    index = quantiser.index
    for start in range(0, n_vectors, ADD_BLOCK):
        block = np.arange(start, min(start + ADD_BLOCK, n_vectors))
        index.add(mapped.take(block).astype(np.float32))
        progress("add", (block[-1] + 1) / n_vectors)
    approximation = tuning.tune(quantiser, mapped, lambda share: progress("measure", share))
    _write(index, path)
    return approximation


def _write(index: faiss.Index, path: Path) -> None:
    """Raises StorageFull, StorageError. FAISS raises RuntimeError only, with the reason in its text."""
    try:
        faiss.write_index(index, str(path))
    except RuntimeError as error:
        if os.strerror(errno.ENOSPC) in str(error) or is_disk_full(path.parent):
            raise StorageFull(f"no space left for {path}") from error
        raise StorageError(f"{path} cannot be written: {error}") from error
