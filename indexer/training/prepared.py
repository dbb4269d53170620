"""A task ready to be trained: what the tasks give and the trainer takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from indexer.training.request import Metrics

Row = dict[str, Any]
"""Token ids and labels of one input, not padded; or texts, which the trainer's model tokenises itself."""
Measure = Callable[[torch.nn.Module], Metrics]
"""Metrics of a module on a fixed set; leaves the module in evaluation mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    module: Any
    """A model of transformers or sentence-transformers."""
    encoder: torch.nn.Module
    """The part of the module that the base gave."""
    tokenizer: PreTrainedTokenizerBase
    rows: Any
    """To train on: a sequence of Row, or a Dataset."""
    lengths: Sequence[int]
    """(n,), tokens of each row."""
    collate: Callable[[list[Any]], Any] | None
    measure_validation: Measure
    measure_test: Measure | None
    metric: str
    """The one that chooses the best checkpoint; greater is better."""
    labels: Sequence[str] = ()
    max_tokens: int
    sizes: dict[str, int] = field(default_factory=dict)
    """Examples of each split, for the model card."""
    notes: Sequence[str] = ()
    """What was cut or held out."""
    save: Callable[[Any, Path], None] | None = None
    """Writes the module into a folder; None: as Hugging Face does, with the tokenizer."""
    loss: torch.nn.Module | None = None
    """Of a trainer of sentence-transformers; the others' models know their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Files of a data set."""

    train: Sequence[Path]
    validation: Path | None
    test: Path | None
