"""Turns a published bi-encoder into an int8 network for OpenVINO. Runs as a process of its own.

    python -m indexer.quantisation REQUEST

REQUEST is a file with the JSON of a `QuantisationRequest`. Progress goes to standard output, one
"stage<TAB>share" a line.
Being its own process, it keeps torch and NNCF, their memory and their printing out of whoever prepares
models, and it can be stopped at any moment.

The method is NNCF's post-training quantisation: weights and activations in int8, activation ranges from real
text, outlier channels moved into the weights first (Xiao et al. 2023, "SmoothQuant"), biases corrected after.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from app.engine.silent_openvino import openvino
from indexer.quantisation_request import QuantisationRequest

import nncf  # isort: skip  after silent_openvino, or it reports to its makers

PASSES_OVER_TEXTS = 2
"""NNCF collects statistics once for SmoothQuant and once for the ranges."""
BATCH_FOR_COMPARISON = 8


class PooledEncoder(torch.nn.Module):
    """Transformer, pooling and normalisation as one network: ids, mask (n, t) -> vectors (n, d)."""

    def __init__(self, transformer: torch.nn.Module, pooling: Literal["mean", "cls"]) -> None:
        super().__init__()
        self.transformer = transformer
        self.pooling = pooling

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        pooled = hidden[:, 0] if self.pooling == "cls" else mean_pool(hidden, attention_mask)
        return torch.nn.functional.normalize(pooled, dim=1)


def mean_pool(token_embeddings: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """Average the embeddings of the real tokens of each text.

    v[i] = sum_t mask[i, t] * h[i, t] / sum_t mask[i, t]; padding has no influence.
    Source: Reimers and Gurevych 2019, section 3 (the MEAN strategy).

    Args:
        token_embeddings: (n, t, d), the encoder's last hidden state.
        attention_mask: (n, t), 1 for a token, 0 for padding; at least one 1 per row.

    Returns:
        (n, d), not normalised.
    """
    mask = attention_mask.unsqueeze(-1).to(token_embeddings.dtype)  # (n, t, 1)
    return (token_embeddings * mask).sum(1) / mask.sum(1)


def quantise(request: QuantisationRequest, progress: "Progress") -> float:
    """Write the int8 network; return the mean cosine of its vectors with the original's on held-out texts."""
    progress.tell("load", 0.0)
    transformer = AutoModel.from_pretrained(
        request.transformer,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=torch.float32,
        attn_implementation="sdpa",
    )
    encoder = PooledEncoder(transformer, request.pooling).eval()
    progress.tell("convert", 0.1)
    ids, mask = _padded(request.held_out[:2])
    example = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    with torch.inference_mode():
        network = openvino.convert_model(encoder, example_input=example)
    quantised = nncf.quantize(
        network,
        nncf.Dataset(progress.count(request.sequences, "calibrate", 0.2, 0.9), _as_inputs),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(request.sequences),
    )
    progress.tell("compare", 0.9)
    similarity = _similarity(encoder, quantised, request.held_out)
    openvino.save_model(quantised, request.network, compress_to_fp16=False)
    progress.tell("store", 1.0)
    return similarity


def _as_inputs(sequence: Sequence[int]) -> list[NDArray[np.int64]]:
    ids = np.array([sequence], dtype=np.int64)  # (1, t)
    return [ids, np.ones_like(ids)]


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    length = max(len(sequence) for sequence in sequences)
    ids = np.zeros((len(sequences), length), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask


def _similarity(encoder: PooledEncoder, quantised: Any, sequences: Sequence[Sequence[int]]) -> float:
    compiled = openvino.Core().compile_model(quantised, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    similarities: list[float] = []
    for start in range(0, len(sequences), BATCH_FOR_COMPARISON):
        ids, mask = _padded(sequences[start : start + BATCH_FOR_COMPARISON])
        with torch.inference_mode():
            original = encoder(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()  # (n, d)
        similarities += np.einsum("nd,nd->n", original, compiled([ids, mask])[0]).tolist()
    return float(np.mean(similarities))


class Progress:
    """Writes "stage<TAB>share" lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def tell(self, stage: str, share: float) -> None:
        print(stage, f"{share:.3f}", sep="\t", file=self._stream, flush=True)

    def count(
        self, sequences: Sequence[Sequence[int]], stage: str, start: float, end: float
    ) -> "CountedSequences":
        return CountedSequences(sequences, self, stage, start, end)


class CountedSequences:
    """Sequences that tell how often they were gone through."""

    def __init__(
        self, sequences: Sequence[Sequence[int]], progress: Progress, stage: str, start: float, end: float
    ) -> None:
        self._sequences = sequences
        self._progress = progress
        self._stage = stage
        self._start = start
        self._end = end
        self._n_given = 0

    def __len__(self) -> int:
        return len(self._sequences)

    def __iter__(self) -> Iterator[Sequence[int]]:
        for sequence in self._sequences:
            share = min(1.0, self._n_given / (PASSES_OVER_TEXTS * len(self._sequences)))
            self._progress.tell(self._stage, self._start + share * (self._end - self._start))
            self._n_given += 1
            yield sequence


def main(request_file: str) -> None:
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no progress
    request = QuantisationRequest(**json.loads(Path(request_file).read_text(encoding="utf-8")))
    progress = Progress(stream)
    progress.tell("similarity", quantise(request, progress))


if __name__ == "__main__":
    main(sys.argv[1])
