"""Whether a failed write may be due to a full disk. Libraries report that in many ways, some in none."""

import shutil
from pathlib import Path

FREE_BYTES_OF_A_FULL_DISK = 2**20
"""Below this a write that failed for no reason given is taken to have failed for want of space."""


def is_disk_full(folder: Path) -> bool:
    """False where it cannot be told."""
    try:
        return shutil.disk_usage(folder).free < FREE_BYTES_OF_A_FULL_DISK
    except OSError:
        return False
