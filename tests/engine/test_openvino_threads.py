"""The first arrays that several threads of a process hand to OpenVINO."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
N_PROCESSES = 5
PATIENCE_S = 60
FIRST_ARRAYS = """
import sys
import threading
import numpy as np
from app.engine.silent_openvino import openvino

sys.setswitchinterval(1e-6)
at_once = threading.Barrier(2)

def first_array():
    array = np.zeros((1, 16), dtype=np.int64)
    at_once.wait()
    openvino.Type.i64.to_dtype()
    openvino.Tensor(array, shared_memory=True)

threads = [threading.Thread(target=first_array, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_make_their_first_arrays_at_once_do_not_wait_for_each_other() -> None:
    """With openvino imported as it is, two of three such processes stand still for ever."""
    processes = [subprocess.Popen([sys.executable, "-c", FIRST_ARRAYS], cwd=ROOT) for _ in range(N_PROCESSES)]
    try:
        assert [process.wait(PATIENCE_S) for process in processes] == [0] * N_PROCESSES
    finally:
        for process in processes:
            process.kill()
            process.wait()
