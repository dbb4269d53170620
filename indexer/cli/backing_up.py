"""What `bifocal backup` and `bifocal restore` do."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from app.settings import Settings
from indexer.backups.archive import Progress
from indexer.backups.making import make_backup
from indexer.backups.restoring import restore_backup
from indexer.cli.printing import output, print_json

SHOWN = ("collections", "documents", "passages", "classifiers", "api_keys", "jobs")


def back_up(settings: Settings, file: Path, *, as_json: bool) -> None:
    began = time.monotonic()
    with _progress() as progress:
        contents = make_backup(settings.rows_file, file, progress)
    seconds = time.monotonic() - began
    size_bytes = file.stat().st_size
    if as_json:
        print_json({"file": file, "file_bytes": size_bytes, "seconds": round(seconds, 3), **asdict(contents)})
        return
    output().print(
        f"{file}: {size_bytes / 2**20:.1f} MiB in {seconds:.1f} s, verified; {_counted(contents.counts)}.",
        markup=False,
        soft_wrap=True,
    )


def restore(settings: Settings, file: Path, *, is_replaced: bool, as_json: bool) -> None:
    began = time.monotonic()
    with _progress() as progress:
        restored = restore_backup(file, settings, replace=is_replaced, progress=progress)
    seconds = time.monotonic() - began
    contents = restored.contents
    if as_json:
        print_json(
            {
                "data": settings.home,
                "kept": restored.kept,
                "seconds": round(seconds, 3),
                **asdict(contents),
            }
        )
        return
    output().print(
        f"{settings.home}: restored in {seconds:.1f} s what Bifocal {contents.version} backed up at "
        f"{contents.created_at}; {_counted(contents.counts)}.",
        markup=False,
        soft_wrap=True,
    )
    if restored.kept is not None:
        output().print(f"What was there before is in {restored.kept}.", markup=False, soft_wrap=True)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in SHOWN)


@contextmanager
def _progress() -> Iterator[Progress]:
    """On a terminal."""
    with output().status("") as status:
        yield lambda stage, share: status.update(f"{stage} {share:.0%}")
