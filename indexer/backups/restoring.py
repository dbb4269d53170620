"""A store out of a backup: made and checked beside the one that is there, then put in its place."""

import contextlib
import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.errors import BadFile, Conflict, StorageDamaged, StorageError, StorageFull
from app.settings import INDEX_FOLDER, ROWS_FILE, Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.embedded.building import sync
from app.storage.sqlite import SqliteRows
from app.storage.sqlite.copying import count_rows, is_used
from app.storage.sqlite.migrations import MIGRATIONS
from indexer.backups.archive import Contents, Progress, read_archive, read_manifest
from indexer.backups.making import require_sound

UNFINISHED = ".unfinished-restore-"


@dataclass(frozen=True, slots=True)
class Restored:
    contents: Contents
    kept: Path | None
    """Folder with the store that was there before."""


def restore_backup(archive: Path, settings: Settings, *, replace: bool, progress: Progress) -> Restored:
    """Nothing of the home of `settings` changes before the archive is known to be whole and its store works.

    Raises:
        BadFile: not a backup, or damaged, or cut.
        SchemaTooNew: a newer version made it.
        Conflict: there is a store, and `replace` is false; or it is in use.
        StorageFull, StorageError
    """
    home = settings.home
    _require_replaceable(home, replace=replace)
    described = read_manifest(archive)
    with _made(home), _unfinished(home) as folder:
        _require_space(home, described.size_bytes)
        contents = _unpacked(archive, folder / ROWS_FILE, progress)
        _build_indexes(settings.model_copy(update={"home": folder}), progress)
        _require_replaceable(home, replace=replace)
        kept = _put_in_place(folder, home)
    return Restored(contents, kept)


def _unpacked(archive: Path, rows: Path, progress: Progress) -> Contents:
    contents = read_archive(archive, len(MIGRATIONS), rows, progress)
    sync(rows)
    try:
        require_sound(rows)
        counted = dict(count_rows(rows))
    except StorageDamaged as error:
        raise BadFile(f"{archive} is damaged: {error}") from error
    if counted != dict(contents.counts):
        raise BadFile(f"{archive} is damaged: it has {counted}, not {dict(contents.counts)} as it says")
    return contents


def _build_indexes(settings: Settings, progress: Progress) -> None:
    with closing(SqliteRows(settings.rows_file)) as rows:
        index = EmbeddedIndex(rows, settings.index_folder, settings)
        try:
            for collection in rows.collections():
                index.rebuild_words(collection)
                index.maintain(collection, progress=lambda _, share: progress("index", share))
        finally:
            index.close()


def _require_replaceable(home: Path, *, replace: bool) -> None:
    if not _of_store(home):
        return
    if not replace:
        raise Conflict(
            f"there is a store in {home}: restore into another folder with --data, or say --replace, which "
            "keeps what is there in a folder beside it"
        )
    with contextlib.suppress(StorageDamaged):  # which may be why it is replaced
        if (home / ROWS_FILE).exists() and is_used(home / ROWS_FILE):
            raise Conflict(
                f"the store in {home} is in use: stop the service and the worker, then repeat this"
            )


def _require_space(home: Path, size_bytes: int) -> None:
    """For the rows and, about as large at most, their indexes."""
    free = shutil.disk_usage(home).free
    if free < 2 * size_bytes:
        raise StorageFull(
            f"{home} has {free / 2**20:.0f} MiB free; the store needs up to {2 * size_bytes / 2**20:.0f} MiB"
        )


def _put_in_place(folder: Path, home: Path) -> Path | None:
    """The rows come last: without them there is no store. What fails half-way is undone."""
    before = _of_store(home)
    kept = home / f"replaced-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%S%f}"
    new = sorted(_of_store(folder), key=lambda path: path.name == ROWS_FILE)
    moves = [*((path, kept / path.name) for path in before), *((path, home / path.name) for path in new)]
    done: list[tuple[Path, Path]] = []
    try:
        if before:
            kept.mkdir()
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except OSError as error:
        for source, target in reversed(done):
            target.rename(source)
        raise StorageError(f"the store in {home} was left as it was: {error}") from error
    sync(home)
    return kept if before else None


def _of_store(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        path for path in folder.iterdir() if path.name == INDEX_FOLDER or path.name.startswith(ROWS_FILE)
    )


@contextmanager
def _made(home: Path) -> Iterator[None]:
    """Taken away again where nothing came of it."""
    was_there = home.exists()
    home.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if not was_there:
            with contextlib.suppress(OSError):
                home.rmdir()
        raise


@contextmanager
def _unfinished(home: Path) -> Iterator[Path]:
    """Inside the home, which may be a file system of its own."""
    with tempfile.TemporaryDirectory(dir=home, prefix=UNFINISHED, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
