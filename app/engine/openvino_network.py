"""The compiled network, run by OpenVINO. Imports neither torch nor transformers."""

import threading
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
    """Implements `app.engine.bi_encoder.Network`.

    Several batches on one thread each rather than one batch on all threads: threads that share a batch wait
    for each other at every layer. Measured while other processes kept both cores busy: 43 instead of 27
    abstracts per second; a single short query took the same time. Threads are not pinned to cores, because
    two processes would pin theirs to the same ones.

    Args:
        folder: of the compiled model.
        threads: 0 means all cores.

    Raises:
        ModelUnavailable: this processor or this version of OpenVINO cannot run it.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
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
        self.runtime = f"openvino-int8 {openvino.__version__.partition('-')[0]}"
        # Seen once with OpenVINO 2026.4 and not again: two threads stood still while making their first
        # tensors. The first one is made here, before there are threads; that this prevents it is a guess.
        self.forward(np.zeros((1, 16), dtype=np.int64), np.ones((1, 16), dtype=np.int64))

    def forward(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        request = self._request_of_this_thread()
        request.infer([ids, mask], share_inputs=True)
        vectors: NDArray[np.float32] = request.get_output_tensor(0).data.copy()
        return vectors

    def _request_of_this_thread(self) -> openvino.InferRequest:
        if not hasattr(self._local, "request"):
            self._local.request = self._model.create_infer_request()
        request: openvino.InferRequest = self._local.request
        return request
