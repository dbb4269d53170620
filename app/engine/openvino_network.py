"""The compiled network, run by OpenVINO. Imports neither torch nor transformers."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.engine.compiled import NETWORK
from app.engine.cores import available_cores
from app.engine.silent_openvino import openvino
from app.errors import ModelUnavailable

MAX_LANES = 4
"""Batches computed at the same time; with more threads than this, several share a batch."""
SHAPES_KEPT = 256
"""Prepared code per layer and shape; OpenVINO's own default of 5,000 only grows with odd traffic."""


class OpenVinoNetwork:
    """Implements `app.engine.network.Network`.

    Several batches on one thread each rather than one batch on all threads: threads that share a batch wait
    for each other at every layer. Measured while other processes kept both cores busy: 43 instead of 27
    abstracts per second; a single short query took the same time. Threads are not pinned to cores, because
    two processes would pin theirs to the same ones.

    Args:
        folder: of the compiled model.
        threads: 0 means all cores.
        precision: of its weights and most of its activations, as the manifest says.

    Raises:
        ModelUnavailable: this processor or this version of OpenVINO cannot run it.
    """

    def __init__(self, folder: Path, *, threads: int, precision: str = "int8") -> None:
        threads = threads or available_cores()
        self.n_lanes = min(threads, MAX_LANES)
        options = {
            "NUM_STREAMS": self.n_lanes,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": SHAPES_KEPT,
        }
        try:
            self._model = openvino.Core().compile_model(folder / NETWORK, "CPU", options)
        except RuntimeError as error:
            raise ModelUnavailable(f"OpenVINO cannot run the model in {folder}: {error}") from error
        self._local = threading.local()
        self.runtime = f"openvino-{precision} {openvino.__version__.partition('-')[0]}"

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        request = self._request_of_this_thread()
        request.infer(list(inputs), share_inputs=True)
        return [tensor.data.copy() for tensor in request.output_tensors]

    def _request_of_this_thread(self) -> openvino.InferRequest:
        if not hasattr(self._local, "request"):
            self._local.request = self._model.create_infer_request()
        request: openvino.InferRequest = self._local.request
        return request
