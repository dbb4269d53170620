"""A file system of a few kilobytes, for tests of full disks."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, size: str) -> None:
        mount("-o", f"remount,size={size}", "tmpfs", str(self.folder))

    def make_read_only(self) -> None:
        mount("-o", "remount,ro", "tmpfs", str(self.folder))


@contextmanager
def small_disk(folder: Path, *, size: str) -> Iterator[SmallDisk]:
    """Mounted at a new folder. The test is skipped where only an administrator may mount."""
    folder.mkdir(parents=True)
    try:
        mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs to mount a small file system: {error}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
