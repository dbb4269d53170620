"""What a training is asked to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Task = Literal["sequence", "token", "reader", "bi-encoder", "cross-encoder", "reader-reranker"]
Precision = Literal["auto", "bf16", "fp32"]
Metrics = dict[str, float]

Objective = Literal["mlm", "mlm+nsp", "mlm+sop"]
Family = Literal["bert", "albert"]

DEFAULT_BASE = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    task: Task
    paths: Sequence[Path]
    """Folders with a file per split, or files to train on."""
    output: Path
    base: str = DEFAULT_BASE
    validation: Path | None = None
    test: Path | None = None
    """Files; without them the splits of `paths` count."""
    freeze: str = "none"
    """See `freezing.freeze`."""
    epochs: float = 3.0
    max_steps: int = -1
    """Greater than 0: end there, whatever `epochs` says."""
    learning_rate: float = 1e-4
    head_rate: float = 1.0
    """By how much faster than the encoder layers that are new learn."""
    batch_tokens: int = 2048
    """Of one forward pass, padding included."""
    accumulate: int = 1
    """Forward passes per step of the optimiser."""
    warmup: float = 0.06
    """Share of the steps."""
    weight_decay: float = 0.01
    dropout: float = 0.1
    max_tokens: int | None = None
    """Of an input; None takes what the base can."""
    truncate: bool = False
    """Cut texts that are longer; otherwise they are an error."""
    patience: int = 0
    """Evaluations without improvement before the training stops; 0 never stops early."""
    precision: Precision = "auto"
    seed: int = 1
    resume: bool = False
    checkpoint_s: float = 300.0
    """Seconds between checkpoints, beside those after each epoch."""
    offline: bool = True
    context: bool = False
    """token: train on runs of consecutive sentences, too, as texts are when they are tagged."""
    capitals: bool = False
    """token: tell an uncased base by segment ids which pieces have a capital letter."""
    negatives: int = 0
    """bi-encoder, cross-encoder: mined hard negatives for each positive."""
    decay: float = 1.0
    """Share of the steps, at the end, in which the learning rate falls to 0. 1: all after the warmup."""
    perturbed: float = 0.0
    """reader-reranker: share of the questions that also come in a form that their passage does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingRequest:
    objective: Objective
    paths: Sequence[Path]
    """The corpus: text, JSON lines, files in SQuAD's layout, and folders of them."""
    output: Path
    base: str = DEFAULT_BASE
    """Where it goes on from; with `config`, only its vocabulary is taken."""
    config: Family | None = None
    """Begin with random weights."""
    layers: int = 6
    heads: int = 12
    dimensions: int = 384
    embedding_dimensions: int = 128
    """Of an ALBERT's word embeddings, which a matrix widens to `dimensions`."""
    whole_words: bool = False
    """Mask all pieces of a word or none."""
    held_out: float = 0.02
    """Share of the documents that only measures."""
    freeze: str = "none"
    epochs: float = 1.0
    max_steps: int = -1
    learning_rate: float = 1e-4
    head_rate: float = 1.0
    batch_tokens: int = 4096
    accumulate: int = 1
    warmup: float = 0.06
    weight_decay: float = 0.01
    dropout: float = 0.1
    max_tokens: int = 128
    precision: Precision = "auto"
    seed: int = 1
    resume: bool = False
    checkpoint_s: float = 300.0
    offline: bool = True
