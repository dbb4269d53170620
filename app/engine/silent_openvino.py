"""OpenVINO without its telemetry and its trap for threads. Import `openvino` from here, never directly.

As installed, merely importing openvino reports to a web analytics service, unless a file in the user's home
says not to. Without the package openvino_telemetry it falls back to a silent stand-in; that is what hiding
the package does. Seen in openvino 2026.4 (openvino/tools/ovc/__init__.py).

Its first array of a process fills tables of element types in static variables of C++, which a lock guards,
by calling Python, which may give up Python's own lock (GIL) meanwhile. A second thread that then makes its
first array waits for the table and keeps the GIL, the first waits for the GIL and keeps the table: every
thread of the process stands still for ever. So both tables are filled here: whoever imports this module
first does it alone. Seen in openvino 2026.4 (pyopenvino/core/common.cpp); pybind11's page on deadlocks
describes the pattern. Recheck with each new minor version.
"""

import sys

import numpy as np

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino  # noqa: E402

__all__ = ["openvino"]

_ = openvino.Tensor(np.zeros(1, dtype=np.int64)).data
