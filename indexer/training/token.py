"""Token classification: a tag for every word, from its first piece.

Words are cut into pieces; the first piece carries the word's tag, the others none, so that as many tags are
learnt and judged as there are words. Source: Devlin et al. 2019, section 5.3.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from transformers import (
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    PretrainedConfig,
    PreTrainedTokenizerBase,
)

from app.engine.capitals import has_capital
from app.engine.entities import iob2_follows, likeliest_path
from app.errors import InvalidInput
from indexer.evaluation.task_metrics import span_f1
from indexer.training.bases import Base
from indexer.training.batching import RoundingCollator
from indexer.training.examples.tagged import TaggedSentence, read_tagged, tags_of
from indexer.training.heads import module_with_labels
from indexer.training.predicting import predict
from indexer.training.prepared import Measure, Prepared, Row
from indexer.training.request import Metrics, TrainingRequest
from indexer.training.splits import find_splits

SUFFIXES = (".conll",)
HELD_OUT_EVERY = 10
"""Every tenth sentence judges where there is no validation split."""
IGNORED = -100
"""Label of tokens that are not judged."""
MIN_RUN_TOKENS, MAX_RUN_TOKENS = 40, 160
"""Of runs of consecutive sentences."""


def prepare_token(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `examples.tagged`.
        InvalidInput: capitals for a base that knows them, or that has no segments to tell them by.
    """
    splits = find_splits(request, suffixes=SUFFIXES)
    sentences = [sentence for path in splits.train for sentence in read_tagged(path)]
    tags = tags_of(sentences)
    validation = read_tagged(splits.validation, allowed=tags) if splits.validation else []
    test = read_tagged(splits.test, allowed=tags) if splits.test else []
    notes = []
    if not validation:
        validation = sentences[::HELD_OUT_EVERY]
        sentences = [s for i, s in enumerate(sentences) if i % HELD_OUT_EVERY]
        notes.append(f"{len(validation)} of the training sentences were held out for validation")
    tokenizer = base.tokenizer()
    max_tokens = min(request.max_tokens or base.max_tokens, base.max_tokens)
    encode = partial(
        _rows, tags=tags, tokenizer=tokenizer, max_tokens=max_tokens, tells_capitals=request.capitals
    )
    rows = encode(sentences)
    if request.context:
        rows = [*rows, *_runs(rows, max_tokens=max_tokens, seed=request.seed)]
    collate = RoundingCollator(
        lambda length: DataCollatorForTokenClassification(
            tokenizer, padding="max_length", max_length=length, label_pad_token_id=IGNORED
        ),
        max_tokens=max_tokens,
    )
    measure = partial(_measure, tags=tags, collate=collate)
    module = module_with_labels(AutoModelForTokenClassification, request, base, tags)
    module.config.is_iob2 = True  # the service reads both when it loads the model
    module.config.reads_capitals = request.capitals
    if request.capitals:
        _check_capitals(tokenizer, module.config)
    return Prepared(
        module=module,
        encoder=module.base_model,
        tokenizer=tokenizer,
        rows=rows,
        lengths=[len(row["input_ids"]) for row in rows],
        collate=collate,
        measure_validation=measure(encode(validation)),
        measure_test=measure(encode(test)) if test else None,
        metric="f1",
        labels=tags,
        max_tokens=max_tokens,
        sizes={"train": len(sentences), "validation": len(validation), "test": len(test)},
        notes=notes,
    )


def _rows(
    sentences: Sequence[TaggedSentence],
    *,
    tags: Sequence[str],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    tells_capitals: bool,
) -> list[Row]:
    """A row per sentence; one longer than the model becomes several that divide its words among them."""
    numbers = {tag: i for i, tag in enumerate(tags)}
    encoded = tokenizer(
        [list(s.words) for s in sentences], is_split_into_words=True, return_offsets_mapping=True
    )
    rows: list[Row] = []
    for i, sentence in enumerate(sentences):
        word_of = encoded.word_ids(i)
        labels = [numbers[tag] for tag in sentence.tags]
        parts = {"input_ids": encoded["input_ids"][i], "labels": _aligned(word_of, labels)}
        if tells_capitals:
            offsets = encoded["offset_mapping"][i]
            parts["token_type_ids"] = [
                int(word is not None and has_capital(sentence.words[word][start:end]))
                for word, (start, end) in zip(word_of, offsets, strict=True)
            ]
        rows += _cut(parts, word_of, max_tokens)
    return rows


def _check_capitals(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig) -> None:
    if tokenizer.tokenize("A") != tokenizer.tokenize("a"):
        raise InvalidInput(
            "--capitals is for a base whose tokenizer makes all letters small; this one does not"
        )
    if getattr(config, "type_vocab_size", 0) < 2:
        raise InvalidInput("--capitals needs a base with two segment ids, as BERT has; this one has none")


def _aligned(word_of: Sequence[int | None], labels: Sequence[int]) -> list[int]:
    """The label of each word at its first piece.

    >>> _aligned([None, 0, 1, 1, None], [7, 8])
    [-100, 7, 8, -100, -100]
    """
    before: list[int | None] = [None, *word_of[:-1]]
    return [
        IGNORED if word is None or word == previous else labels[word]
        for word, previous in zip(word_of, before, strict=True)
    ]


def _cut(row: Row, word_of: Sequence[int | None], max_tokens: int) -> Iterator[Row]:
    """Between words, or inside a word that alone is too long; the special tokens stay around every part."""
    begin, end = 1, len(word_of) - 1
    while begin < end:
        stop = min(begin + max_tokens - 2, end)
        while stop < end and stop - 1 > begin and word_of[stop] == word_of[stop - 1]:
            stop -= 1
        yield {name: [values[0], *values[begin:stop], values[-1]] for name, values in row.items()}
        begin = stop


def _runs(rows: Sequence[Row], *, max_tokens: int, seed: int) -> list[Row]:
    """All rows once more, joined to runs of random length in the order of the file: sentences in context."""
    random = np.random.default_rng(seed)
    runs: list[Row] = []
    limit = 0
    for row in rows:
        if runs and len(runs[-1]["input_ids"]) + len(row["input_ids"]) - 2 <= limit:
            for name, values in row.items():
                runs[-1][name][-1:-1] = values[1:-1]
        else:
            limit = min(int(random.integers(MIN_RUN_TOKENS, MAX_RUN_TOKENS)), max_tokens)
            runs.append({name: list(values) for name, values in row.items()})
    return runs


def _measure(rows: Sequence[Row], *, tags: Sequence[str], collate: RoundingCollator) -> Measure:
    follows = iob2_follows(tags)

    def measure(module: torch.nn.Module) -> Metrics:
        predicted, expected = [], []
        for _numbers, outputs in predict(module, rows, collate):
            judged = outputs["labels"] != IGNORED  # (n, t)
            scores = outputs["logits"].double().softmax(dim=-1)  # (n, t, k)
            for tokens, labels, mask in zip(scores, outputs["labels"], judged, strict=True):
                path = likeliest_path(tokens[mask].cpu().numpy(), follows).tolist() if mask.any() else []
                predicted.append([tags[i] for i in path])
                expected.append([tags[i] for i in labels[mask].tolist()])
        return {"f1": span_f1(predicted, expected), **_f1_by_type(predicted, expected, tags)}

    return measure


def _f1_by_type(
    predicted: Sequence[Sequence[str]], expected: Sequence[Sequence[str]], tags: Sequence[str]
) -> Metrics:
    def only(kind: str, sequences: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[tag if tag[2:] == kind else "O" for tag in tags_] for tags_ in sequences]

    kinds = sorted({tag[2:] for tag in tags} - {""})
    return {f"f1_{kind}": span_f1(only(kind, predicted), only(kind, expected)) for kind in kinds}
