"""Sequence classification: a label for a text, from [CLS] through a feed-forward layer.

Source: Devlin et al. 2019, section 4.1.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
)

from indexer.evaluation.lines import refuse
from indexer.evaluation.task_metrics import accuracy, macro_f1
from indexer.training.bases import Base
from indexer.training.batching import RoundingCollator
from indexer.training.examples.labelled import LabelledText, hold_out, labels_of, read_labelled
from indexer.training.heads import module_with_labels
from indexer.training.predicting import predict
from indexer.training.prepared import Measure, Prepared, Row, Splits
from indexer.training.request import Metrics, TrainingRequest
from indexer.training.splits import find_splits

SUFFIXES = (".jsonl",)
HELD_OUT = 0.1
"""Share of the training examples that judges where there is no validation split."""


def prepare_sequence(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `examples.labelled`; or a text is longer than the model takes and may not be cut.
    """
    splits = find_splits(request, suffixes=SUFFIXES)
    examples = [example for path in splits.train for example in read_labelled(path)]
    labels = labels_of(examples, _labels_folder(request, splits))
    validation = read_labelled(splits.validation, allowed=labels) if splits.validation else []
    test = read_labelled(splits.test, allowed=labels) if splits.test else []
    notes = []
    if not validation:
        examples, validation = hold_out(examples, share=HELD_OUT, seed=request.seed)
        notes.append(f"{len(validation)} of the training examples were held out for validation")
    tokenizer = base.tokenizer()
    max_tokens = min(request.max_tokens or base.max_tokens, base.max_tokens)
    encode = partial(
        _rows, labels=labels, tokenizer=tokenizer, max_tokens=max_tokens, truncate=request.truncate
    )
    collate = RoundingCollator(
        lambda length: DataCollatorWithPadding(tokenizer, padding="max_length", max_length=length),
        max_tokens=max_tokens,
    )
    measure = partial(_measure, labels=labels, collate=collate)
    module = module_with_labels(AutoModelForSequenceClassification, request, base, labels)
    rows = encode(examples)
    return Prepared(
        module=module,
        encoder=module.base_model,
        tokenizer=tokenizer,
        rows=rows,
        lengths=[len(row["input_ids"]) for row in rows],
        collate=collate,
        measure_validation=measure(encode(validation)),
        measure_test=measure(encode(test)) if test else None,
        metric="accuracy",
        labels=labels,
        max_tokens=max_tokens,
        sizes={"train": len(examples), "validation": len(validation), "test": len(test)},
        notes=notes,
    )


def _labels_folder(request: TrainingRequest, splits: Splits) -> Path:
    folder = request.paths[0]
    return folder if folder.is_dir() else splits.train[0].parent


def _rows(
    examples: Sequence[LabelledText],
    *,
    labels: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    truncate: bool,
) -> list[Row]:
    encoded = tokenizer([example.text for example in examples])["input_ids"]
    numbers = {label: i for i, label in enumerate(labels)}
    rows = []
    for example, ids in zip(examples, encoded, strict=True):
        if len(ids) > max_tokens:
            if not truncate:
                refuse(
                    example.path,
                    example.line,
                    f"the text has {len(ids)} tokens, the model takes {max_tokens}; cut it, or allow "
                    "--truncate",
                )
            ids = [*ids[: max_tokens - 1], ids[-1]]  # noqa: PLW2901  what is kept of it
        rows.append({"input_ids": ids, "labels": numbers[example.label]})
    return rows


def _measure(rows: Sequence[Row], *, labels: Sequence[str], collate: RoundingCollator) -> Measure:
    def measure(module: torch.nn.Module) -> Metrics:
        predicted, expected, losses = [], [], 0.0
        for numbers, outputs in predict(module, rows, collate):
            predicted += [labels[i] for i in outputs["logits"].argmax(dim=-1).tolist()]
            expected += [labels[i] for i in outputs["labels"].tolist()]
            losses += float(outputs["loss"]) * len(numbers)
        return {
            "accuracy": accuracy(predicted, expected),
            "macro_f1": macro_f1(predicted, expected),
            "loss": losses / len(rows),
        }

    return measure
