import os
from pathlib import Path

import pytest

from app.engine.cores import available_cores

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("cpu_limit", "cores"),
    [
        ("100000 100000", 1),
        ("50000 100000", 1),
        (f"{ALL * 100000} 100000", ALL),
        (f"{ALL * 500000} 100000", ALL),
        ("max 100000", ALL),
        ("", ALL),
    ],
)
def test_cores_are_limited_by_the_container(cpu_limit: str, cores: int, tmp_path: Path) -> None:
    file = tmp_path / "cpu.max"
    file.write_text(cpu_limit)
    assert available_cores(file) == cores


def test_all_cores_count_where_no_limit_can_be_read(tmp_path: Path) -> None:
    assert available_cores(tmp_path / "missing") == ALL
