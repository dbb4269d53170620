"""`bifocal train` and `bifocal pretrain` with their arguments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from indexer.cli.failures import reported

# Imports inside the functions: see commands.py. Options without a default leave it to the request or recipe.

Number = float | None
TaskName = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK",
        help="sequence, token, reader, bi-encoder, cross-encoder or reader-reranker; a recipe knows its own.",
    ),
]
Recipe = Annotated[
    str | None, typer.Option(help="Train a model that ships again: its settings, and its card.")
]
Base = Annotated[str | None, typer.Option(help="Model to start from: a name or a folder.")]
Data = Annotated[
    list[Path] | None,
    typer.Option(help="Folder with train, validation and test, or a file to train on; may be repeated."),
]
Output = Annotated[
    Path | None,
    typer.Option(help="Folder for checkpoints, log, figures and the model. [build/training/NAME]"),
]
Name = Annotated[
    str | None, typer.Option(help="Also save what differs from the base under this name among the models.")
]
Freeze = Annotated[
    str | None,
    typer.Option(help="What does not learn: none, encoder, or all-but-last-N.", show_default="none"),
]
Rate = Annotated[float | None, typer.Option(min=0.0, help="Learning rate of the encoder.")]
HeadRate = Annotated[
    float | None, typer.Option(min=0.0, help="By how much faster new layers learn.", show_default="1")
]
Epochs = Annotated[float | None, typer.Option(min=0.0, help="Passes over the examples.")]
MaxSteps = Annotated[int | None, typer.Option(min=1, help="End after so many steps.")]
BatchTokens = Annotated[int | None, typer.Option(min=16, help="Tokens of a forward pass, padding included.")]
Accumulate = Annotated[int | None, typer.Option(min=1, help="Forward passes per step.")]
Warmup = Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Share of the steps.")]
WeightDecay = Annotated[float | None, typer.Option(min=0.0)]
Dropout = Annotated[float | None, typer.Option(min=0.0, max=0.9)]
MaxTokens = Annotated[int | None, typer.Option(min=8, help="Of an input, special tokens included.")]
Patience = Annotated[
    int | None, typer.Option(min=0, help="Stop after so many evaluations without improvement; 0 never.")
]
Precision = Annotated[str | None, typer.Option(help="auto, bf16 or fp32.", show_default="auto")]
Seed = Annotated[int | None, typer.Option(min=0)]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --output.")]
CheckpointS = Annotated[float | None, typer.Option(min=0.0, help="Seconds between checkpoints.")]


def train(
    task: TaskName = None,
    *,
    recipe: Recipe = None,
    base: Base = None,
    data: Data = None,
    validation: Annotated[Path | None, typer.Option(help="File that chooses the checkpoint.")] = None,
    test: Annotated[Path | None, typer.Option(help="File measured once, at the end.")] = None,
    output: Output = None,
    name: Name = None,
    freeze: Freeze = None,
    learning_rate: Rate = None,
    head_rate: HeadRate = None,
    epochs: Epochs = None,
    max_steps: MaxSteps = None,
    batch_tokens: BatchTokens = None,
    accumulate: Accumulate = None,
    warmup: Warmup = None,
    weight_decay: WeightDecay = None,
    dropout: Dropout = None,
    max_tokens: MaxTokens = None,
    patience: Patience = None,
    precision: Precision = None,
    seed: Seed = None,
    checkpoint_s: CheckpointS = None,
    truncate: Annotated[bool | None, typer.Option("--truncate", help="Cut texts that are longer.")] = None,
    context: Annotated[
        bool | None, typer.Option("--context", help="token: learn from runs of sentences, too.")
    ] = None,
    capitals: Annotated[
        bool | None, typer.Option("--capitals", help="token: tell an uncased base what has capitals.")
    ] = None,
    negatives: Annotated[
        int | None,
        typer.Option(min=0, help="bi-encoder, cross-encoder: mined hard negatives of each positive."),
    ] = None,
    resume: Resume = False,
    compare_freezing: Annotated[
        bool,
        typer.Option("--compare-freezing", help="Train three times, freezing nothing, a part, the encoder."),
    ] = False,
) -> None:
    """Fine-tune a BERT-like model. Interrupted, it goes on with --resume."""
    given: dict[str, Any] = {
        name_: value
        for name_, value in locals().items()
        if name_ not in {"task", "recipe", "data", "name", "output", "resume", "compare_freezing"}
    }
    with reported():
        from app.settings import Settings
        from indexer.cli import training_run

        training_run.train(
            Settings.from_environment(),
            task,
            recipe=recipe,
            given={**given, "paths": data},
            output=output,
            name=name,
            is_resumed=resume,
            compares_freezing=compare_freezing,
        )


def pretrain(
    *,
    recipe: Recipe = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="mlm, mlm+nsp (next sentence) or mlm+sop (sentence order).", show_default="mlm+nsp"
        ),
    ] = None,
    corpus: Annotated[
        list[Path] | None, typer.Option(help="Text, JSON lines or SQuAD files, or folders; may be repeated.")
    ] = None,
    base: Base = None,
    config: Annotated[
        str | None, typer.Option(help="bert or albert: begin with random weights, and the base's vocabulary.")
    ] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="With --config.", show_default="6")] = None,
    heads: Annotated[int | None, typer.Option(min=1, help="With --config.", show_default="12")] = None,
    dimensions: Annotated[int | None, typer.Option(min=8, help="With --config.", show_default="384")] = None,
    embedding_dimensions: Annotated[
        int | None, typer.Option(min=8, help="With --config albert.", show_default="128")
    ] = None,
    whole_words: Annotated[
        bool | None, typer.Option("--whole-words", help="Mask all pieces of a word, or none.")
    ] = None,
    held_out: Annotated[
        float | None, typer.Option(min=0.0, max=0.5, help="Share of documents that measures.")
    ] = None,
    output: Output = None,
    name: Name = None,
    freeze: Freeze = None,
    learning_rate: Rate = None,
    head_rate: HeadRate = None,
    epochs: Epochs = None,
    max_steps: MaxSteps = None,
    batch_tokens: BatchTokens = None,
    accumulate: Accumulate = None,
    warmup: Warmup = None,
    weight_decay: WeightDecay = None,
    dropout: Dropout = None,
    max_tokens: MaxTokens = None,
    precision: Precision = None,
    seed: Seed = None,
    checkpoint_s: CheckpointS = None,
    resume: Resume = False,
) -> None:
    """Learn to fill masked words and to judge pairs of segments, from scratch or from a model on."""
    given: dict[str, Any] = {
        name_: value
        for name_, value in locals().items()
        if name_ not in {"recipe", "corpus", "name", "output", "resume"}
    }
    with reported():
        from app.settings import Settings
        from indexer.cli import training_run

        training_run.pretrain(
            Settings.from_environment(),
            recipe=recipe,
            given={**given, "paths": corpus},
            output=output,
            name=name,
            is_resumed=resume,
        )
