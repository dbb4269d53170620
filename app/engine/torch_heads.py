"""Networks of heads as published, run by PyTorch: the fallback runtime, the reference, and what is compiled.

Importing this module imports torch and transformers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from app.engine.head_files import HeadFiles
from app.engine.quiet_transformers import quiet
from app.engine.torch_models import load_module

ATTRIBUTES = {
    "logits": "logits",
    "start": "start_logits",
    "end": "end_logits",
    "token_logits": "prediction_logits",
    "next_logits": "seq_relationship_logits",
}
"""Our names of outputs, and those of transformers."""


class Head(torch.nn.Module):
    """ids, mask and, if it reads them, segment ids (n, t) -> the outputs in the order of `files.outputs`."""

    def __init__(self, files: HeadFiles) -> None:
        super().__init__()
        self.module = _module(files)
        self.names = [output.name for output in files.outputs]
        self.has_segments = files.has_segments

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, ...]:
        segments = {"token_type_ids": token_type_ids} if self.has_segments else {}
        outputs = self.module(input_ids=input_ids, attention_mask=attention_mask, **segments)
        if isinstance(outputs, tuple):
            return outputs
        return tuple(_output(outputs, name) for name in self.names)


def _module(files: HeadFiles) -> torch.nn.Module:
    if not isinstance(files.source, Path):
        return load_module(files.source)
    quiet()
    module: torch.nn.Module = getattr(transformers, files.architecture).from_pretrained(
        files.source,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=torch.float32,
        attn_implementation="sdpa",
    )
    return module.eval()


def _output(outputs: object, name: str) -> torch.Tensor:
    found = getattr(outputs, ATTRIBUTES[name], None)
    tensor: torch.Tensor = found if found is not None else outputs.logits  # type: ignore[attr-defined]
    return tensor


class TorchHeadNetwork:
    """Implements `app.engine.network.Network`.

    Args:
        threads: 0 leaves the number to torch.
    """

    n_lanes = 1

    def __init__(self, files: HeadFiles, *, threads: int) -> None:
        if threads:
            torch.set_num_threads(threads)
        self._head = Head(files)
        self.runtime = f"torch-float32 {torch.__version__}"

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        with torch.inference_mode():
            return [output.float().numpy() for output in self._head(*map(torch.from_numpy, inputs))]
