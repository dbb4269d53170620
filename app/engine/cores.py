"""How many cores this process may use."""

import math
import os
from pathlib import Path

CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
"""In a container with a CPU limit: "QUOTA PERIOD", or "max PERIOD" without one (cgroup v2)."""


def available_cores(cpu_limit: Path = CPU_LIMIT) -> int:
    """Cores that the scheduler gives, at most as many as the container's limit is worth, at least 1.

    More threads than that would be halted in the middle of their work again and again.
    """
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = cpu_limit.read_text(encoding="ascii").split()
        limit = math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
        return cores
    return max(1, min(cores, limit))
