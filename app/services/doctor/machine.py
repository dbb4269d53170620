"""What the store needs of the machine."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from app.domain.health import Fault
from app.services.doctor.patient import Patient
from app.settings import ROWS_FILE, Settings

LEAST_FREE_BYTES = 64 * 2**20
"""The log of the rows may grow by so much in a single large write."""


def disk(settings: Settings) -> Iterator[Fault]:
    """Room for a write, and for a new base of each index beside the one in use."""
    free = shutil.disk_usage(settings.home).free
    needed = sum(_size_bytes(path) for path in settings.index_folder.glob("*/*/*"))
    if free < LEAST_FREE_BYTES:
        yield Fault(f"{_mib(free)} are free; writes are about to fail", str(settings.home))
    elif free < needed:
        yield Fault(
            f"{_mib(free)} are free; building all indexes anew takes {_mib(needed)} for a while",
            str(settings.home),
            is_warning=True,
        )


def permissions(settings: Settings) -> Iterator[Fault]:
    paths = [settings.home, settings.index_folder, *sorted(settings.home.glob(f"{ROWS_FILE}*"))]
    for path in paths:
        if not path.exists():
            continue
        access = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if not os.access(path, access):
            yield Fault("this process may not read and write it; change its owner or its mode", str(path))
        if path.stat().st_mode & stat.S_IWOTH:
            yield Fault("everyone on this machine may write it; take that right away", str(path))


def worker(patient: Patient) -> Iterator[Fault]:
    if not patient.rows.worker_alive():
        yield Fault(
            "none is running, so writes wait; start `bifocal worker` or `bifocal up`",
            str(patient.settings.home),
            is_warning=True,
        )


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # replaced meanwhile
        return 0


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.0f} MiB"
