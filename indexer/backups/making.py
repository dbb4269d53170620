"""Making a backup, also while the service and its worker run."""

import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app import __version__
from app.errors import Conflict, StorageDamaged, StorageError, StorageFull
from app.storage.embedded.building import sync
from app.storage.failed_writes import failed_writes
from app.storage.sqlite.copying import copy_rows, count_rows
from app.storage.sqlite.examination import Examination
from indexer.backups.archive import Contents, Progress, digest_of, read_archive, write_archive

UNFINISHED = ".unfinished-backup-"


def make_backup(rows: Path, target: Path, progress: Progress) -> Contents:
    """A verified archive of the rows as they are now, under its name only when it is whole and on disk.

    Raises:
        Conflict: there is a file of that name already.
        StorageDamaged: the rows are damaged; their backup would be, too.
        StorageFull, StorageReadOnly, StorageError
    """
    if target.exists():
        raise Conflict(f"{target} exists; a backup never replaces a file: choose another name")
    if not rows.exists():
        raise StorageError(f"there is no store in {rows.parent}")
    message = f"{target} cannot be written, nothing is under that name"
    with failed_writes(message), _unfinished(target.parent) as folder:
        _require_space(folder, rows)
        copy = folder / "rows"
        progress("copy", 0.0)
        copy_rows(rows, copy)
        contents = _verified(copy)
        archive = folder / "archive"
        write_archive(archive, copy, contents, progress)
        sync(archive)
        read_archive(archive, contents.schema, None, lambda _, share: progress("verify", share))
        archive.chmod(0o600)  # it has all documents
        archive.rename(target)
        sync(target.parent)
    return contents


def require_sound(rows: Path) -> int:
    """Gives the schema's version. Raises StorageDamaged."""
    with Examination(rows) as examination:
        faults = [*examination.schema(), *examination.integrity()]
        version = examination.version
    if faults:
        raise StorageDamaged(f"the rows are damaged: {'; '.join(fault.what for fault in faults)}")
    return version


def _verified(copy: Path) -> Contents:
    schema = require_sound(copy)
    return Contents(
        version=__version__,
        created_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        schema=schema,
        size_bytes=copy.stat().st_size,
        sha256=digest_of(copy),
        counts=dict(count_rows(copy)),
    )


def _require_space(folder: Path, rows: Path) -> None:
    """For the copy and, at worst as large, the archive."""
    needed = 2 * rows.stat().st_size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StorageFull(
            f"{folder.parent} has {free / 2**20:.0f} MiB free; the backup needs up to "
            f"{needed / 2**20:.0f} MiB while it is made"
        )


@contextmanager
def _unfinished(parent: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=parent, prefix=UNFINISHED, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
