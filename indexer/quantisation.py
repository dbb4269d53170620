"""Turns a model as published or trained into an int8 network for OpenVINO. Runs as a process of its own.

    python -m indexer.quantisation REQUEST

REQUEST is a file with the JSON of a `QuantisationRequest`. Progress goes to standard output, one
"stage<TAB>share" a line.
Being its own process, it keeps torch and NNCF, their memory and their printing out of whoever prepares
models, and it can be stopped at any moment.

The method is NNCF's post-training quantisation: weights and activations in int8, activation ranges from real
text, outlier channels moved into the weights first (Xiao et al. 2023, "SmoothQuant"), biases corrected after.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from app.engine.head_files import find_head
from app.engine.runner import Output
from app.engine.silent_openvino import openvino
from app.engine.torch_heads import Head
from app.settings import Settings
from indexer.likeness import Likeness, MeanCosine
from indexer.quantisation_request import QuantisationRequest

import nncf  # isort: skip  after silent_openvino, or it reports to its makers

Sequences = Sequence[Sequence[Sequence[int]]]
"""Of each input its token ids and, if the network reads them, its segment ids."""

PASSES_OVER_TEXTS = 2
"""NNCF collects statistics once for SmoothQuant and once for the ranges."""
BATCH_FOR_COMPARISON = 8
VECTOR = "vector"


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
    """Write the network; return how alike its outputs are to the original's on held-out inputs, at most 1."""
    progress.tell("load", 0.0)
    module, outputs = _loaded(request)
    progress.tell("convert", 0.1)
    names = ("input_ids", "attention_mask", "token_type_ids")
    example = {
        name: torch.from_numpy(array)
        for name, array in zip(names, _padded(request.held_out[:2]), strict=False)
    }
    with torch.inference_mode():
        network = openvino.convert_model(module, example_input=example)
    if request.precision == "int8":
        network = nncf.quantize(
            network,
            nncf.Dataset(progress.count(request.sequences, "calibrate", 0.2, 0.9), _as_inputs),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(request.sequences),
            ignored_scope=nncf.IgnoredScope(patterns=list(request.full_precision), validate=False),
        )
    progress.tell("compare", 0.9)
    similarity = least_likeness(module, network, request.held_out, outputs)
    openvino.save_model(network, request.network, compress_to_fp16=False)
    progress.tell("store", 1.0)
    return similarity


def _loaded(request: QuantisationRequest) -> tuple[torch.nn.Module, Sequence[Output]]:
    """The network in float32, and what it gives."""
    if request.head:
        files = find_head(request.head, Settings(models=Path(request.models)))
        return Head(files).eval(), files.outputs
    transformer = AutoModel.from_pretrained(
        request.transformer,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
        dtype=torch.float32,
        attn_implementation="sdpa",
    )
    return PooledEncoder(transformer, request.pooling).eval(), (Output(VECTOR),)


def _as_inputs(sequence: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    return _padded([sequence])


def _padded(sequences: Sequences) -> list[NDArray[np.int64]]:
    """Ids, mask and, if there are any, segment ids (n, t)."""
    length = max(len(sequence[0]) for sequence in sequences)
    ids, *segments = np.zeros((len(sequences[0]), len(sequences), length), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        mask[row, : len(sequence[0])] = 1
        for array, values in zip([ids, *segments], sequence, strict=True):
            array[row, : len(values)] = values
    return [ids, mask, *segments]


def least_likeness(
    module: torch.nn.Module,
    network: Any,
    sequences: Sequences,
    outputs: Sequence[Output],
) -> float:
    """Of the output that suffered most, over all inputs and their real tokens."""
    compiled = openvino.Core().compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    measures = [MeanCosine() if output.name == VECTOR else Likeness() for output in outputs]
    for start in range(0, len(sequences), BATCH_FOR_COMPARISON):
        inputs = _padded(sequences[start : start + BATCH_FOR_COMPARISON])
        is_token = inputs[1].astype(np.bool_)
        with torch.inference_mode():
            originals = module(*map(torch.from_numpy, inputs))
        originals = originals if isinstance(originals, tuple) else (originals,)
        copies = compiled(inputs)
        for at, (output, measure) in enumerate(zip(outputs, measures, strict=True)):
            rows = is_token if output.token_axes else slice(None)
            measure.add(*(_as_rows(array[rows]) for array in (originals[at].numpy(), copies[at])))
    return min(measure.value for measure in measures)


def _as_rows(array: NDArray[Any]) -> NDArray[Any]:
    """(n, columns), also of (n,)."""
    return array.reshape(len(array), -1)


class Progress:
    """Writes "stage<TAB>share" lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def tell(self, stage: str, share: float) -> None:
        print(stage, f"{share:.3f}", sep="\t", file=self._stream, flush=True)

    def count(self, sequences: Sequences, stage: str, start: float, end: float) -> "CountedSequences":
        return CountedSequences(sequences, self, stage, start, end)


class CountedSequences:
    """Sequences that tell how often they were gone through."""

    def __init__(
        self, sequences: Sequences, progress: Progress, stage: str, start: float, end: float
    ) -> None:
        self._sequences = sequences
        self._progress = progress
        self._stage = stage
        self._start = start
        self._end = end
        self._n_given = 0

    def __len__(self) -> int:
        return len(self._sequences)

    def __iter__(self) -> Iterator[Sequence[Sequence[int]]]:
        for sequence in self._sequences:
            share = min(1.0, self._n_given / (PASSES_OVER_TEXTS * len(self._sequences)))
            self._progress.tell(self._stage, self._start + share * (self._end - self._start))
            self._n_given += 1
            yield sequence


def main(request_file: str) -> None:
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no progress
    request = QuantisationRequest.from_json(Path(request_file).read_text(encoding="utf-8"))
    progress = Progress(stream)
    progress.tell("similarity", quantise(request, progress))


if __name__ == "__main__":
    main(sys.argv[1])
