"""The network as published, run by PyTorch through sentence-transformers: the fallback, and the reference."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from app.engine.model_files import BiEncoderFiles


class TorchNetwork:
    """Implements `app.engine.network.Network`. Importing this module imports torch.

    Args:
        files: of the model.
        threads: 0 leaves the number to torch.
    """

    n_lanes = 1

    def __init__(self, files: BiEncoderFiles, *, threads: int) -> None:
        if threads:
            torch.set_num_threads(threads)
        self._model = SentenceTransformer(
            str(files.folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        ).eval()
        self.runtime = f"torch-float32 {torch.__version__}"

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        ids, mask = inputs
        features = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        with torch.inference_mode():
            pooled = self._model(features)["sentence_embedding"]  # (n, d)
            vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=1).numpy()
        return [vectors]
