"""Weights as NumPy arrays, mapped from safetensors files: only what is touched takes memory.

The format (github.com/huggingface/safetensors): 8 bytes length of the header, the header in JSON with dtype,
shape and byte range of each tensor, then the tensors.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ModelUnavailable

DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2", "F64": "<f8"}


class Tensors(Mapping[str, NDArray[np.float32]]):
    """Every floating-point tensor of the files, by name; of the same name in several files, the last.

    Values are float32: a view of the file where it is stored so, else a copy made at each access.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._stored: dict[str, tuple[NDArray[Any], str]] = {}
        for file in files:
            self._stored.update(_mapped(file))

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        stored, dtype = self._stored[name]
        return _as_float32(stored, dtype)

    def rows(self, name: str, places: NDArray[np.integer]) -> NDArray[np.float32]:
        """Some rows of a table, without reading all of it."""
        stored, dtype = self._stored[name]
        return _as_float32(stored[places], dtype)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._stored[name][0].shape

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _as_float32(stored: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    if dtype == "BF16":  # the upper half of a float32
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return np.asarray(stored, dtype=np.float32)


def _mapped(file: Path) -> Iterator[tuple[str, tuple[NDArray[Any], str]]]:
    try:
        with file.open("rb") as stream:
            n_bytes = int.from_bytes(stream.read(8), "little")
            header: dict[str, dict[str, Any]] = json.loads(stream.read(n_bytes))
        content = np.memmap(file, dtype=np.uint8, mode="r")
        for name, tensor in header.items():
            if tensor.get("dtype") in DTYPES:
                start, end = (8 + n_bytes + place for place in tensor["data_offsets"])
                stored = content[start:end].view(DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
                yield name, (stored, tensor["dtype"])
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailable(f"{file} is not a file of safetensors: {error}") from error
