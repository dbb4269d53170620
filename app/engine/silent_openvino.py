"""OpenVINO without its telemetry. Import `openvino` from here, never directly.

As installed, merely importing openvino reports to a web analytics service, unless a file in the user's home
says not to. Without the package openvino_telemetry it falls back to a silent stand-in; that is what hiding
the package does. Seen in openvino 2026.4 (openvino/tools/ovc/__init__.py).
"""

import sys

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino  # noqa: E402

__all__ = ["openvino"]
