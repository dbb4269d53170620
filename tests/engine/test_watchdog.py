"""Processes whose model stands still."""

import subprocess
import sys
from pathlib import Path

from app.engine.watchdog import STUCK_EXIT_CODE

ROOT = Path(__file__).parents[2]
STANDS_STILL = """
import ctypes, sys, time
from app.engine import batching, watchdog

watchdog.SPARE_S = 0.5

def waits_in_native_code(sequences):
    time.sleep(1000)

def waits_and_keeps_the_lock_of_python(sequences):
    ctypes.PyDLL(None).sleep(1000)

owner = batching.BatchingOwner(
    globals()[sys.argv[1]], n_lanes=1, max_batch_tokens=9, max_queue=9, call_limit_s=0.5
)
owner.encode([[1]])
"""


def run(forward: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STANDS_STILL, forward],
        cwd=ROOT,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    )


def test_process_whose_model_stands_still_ends_with_its_own_code_and_the_stacks() -> None:
    ended = run("waits_in_native_code")
    assert ended.returncode == STUCK_EXIT_CODE
    assert "a call of the model has not returned for 0.5 s" in ended.stderr
    assert "in waits_in_native_code" in ended.stderr
    assert "in encode" in ended.stderr


def test_process_ends_with_the_stacks_where_no_thread_of_python_can_run_any_more() -> None:
    ended = run("waits_and_keeps_the_lock_of_python")
    assert ended.returncode == 1
    assert "in waits_and_keeps_the_lock_of_python" in ended.stderr
