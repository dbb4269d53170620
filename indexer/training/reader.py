"""Extractive question answering: start and end of the answer for every token, "no answer" at [CLS].

Long contexts are read in overlapping windows, and the best span of all of them counts.
Source: Devlin et al. 2019, sections 4.2 and 4.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForQuestionAnswering, DataCollatorWithPadding, PreTrainedTokenizerBase

from app.errors import InvalidInput
from indexer.evaluation.lines import refuse
from indexer.evaluation.task_metrics import answer_f1, auroc, exact_match
from indexer.training.bases import Base, loading
from indexer.training.batching import RoundingCollator
from indexer.training.examples.questions import Question, Span, read_questions
from indexer.training.freezing import freeze
from indexer.training.predicting import predict
from indexer.training.prepared import Measure, Prepared, Row
from indexer.training.request import Metrics, TrainingRequest
from indexer.training.splits import find_splits

SUFFIXES = (".json",)
DEFAULT_MAX_TOKENS = 384
STRIDE_SHARE = 1 / 3
"""Of a window that the next one repeats."""
MIN_CONTEXT_TOKENS = 16
MAX_ANSWER_TOKENS = 30
HELD_OUT_EVERY = 10


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a context as the model sees it."""

    question: int
    """Number of its question."""
    row: Row
    offsets: NDArray[np.int64]  # (t, 2), code points of the context; -1 for every other token


def prepare_reader(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `examples.questions`; or a question leaves no room for its context.
    """
    splits = find_splits(request, suffixes=SUFFIXES)
    questions = [question for path in splits.train for question in read_questions(path)]
    validation = read_questions(splits.validation) if splits.validation else []
    test = read_questions(splits.test) if splits.test else []
    notes = []
    if not validation:
        questions, validation = _hold_out(questions)
        notes.append(f"{len(validation)} questions of the last articles were held out for validation")
    tokenizer = base.tokenizer()
    max_tokens = min(request.max_tokens or DEFAULT_MAX_TOKENS, base.max_tokens)
    cut = partial(windows, tokenizer=tokenizer, max_tokens=max_tokens)
    collate = RoundingCollator(
        lambda length: DataCollatorWithPadding(tokenizer, padding="max_length", max_length=length),
        max_tokens=max_tokens,
    )
    abstains = any(not question.answers for question in questions)
    measure = partial(_measure, collate=collate, abstains=abstains)
    module = AutoModelForQuestionAnswering.from_pretrained(
        base.folder, **loading(base, dropout=request.dropout)
    )
    freeze(module.base_model, request.freeze)
    rows = [window.row for window in cut(questions)]
    return Prepared(
        module=module,
        encoder=module.base_model,
        tokenizer=tokenizer,
        rows=rows,
        lengths=[len(row["input_ids"]) for row in rows],
        collate=collate,
        measure_validation=measure(validation, list(cut(validation))),
        measure_test=measure(test, list(cut(test))) if test else None,
        metric="f1",
        max_tokens=max_tokens,
        sizes={"train": len(questions), "validation": len(validation), "test": len(test)},
        notes=notes,
    )


def windows(
    questions: Sequence[Question], *, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Iterator[Window]:
    """All windows of all contexts; one without the whole answer is labelled as having none."""
    n_special = tokenizer.num_special_tokens_to_add(pair=True)
    for i, question in enumerate(questions):
        n_question = len(tokenizer(question.text, add_special_tokens=False)["input_ids"])
        room = max_tokens - n_special - n_question
        if room < MIN_CONTEXT_TOKENS:
            refuse(
                question.path,
                question.line,
                f"the question {question.id!r} has {n_question} tokens, which leaves {max(room, 0)} of the "
                f"model's {max_tokens} for its context; {MIN_CONTEXT_TOKENS} are needed",
            )
        encoded = tokenizer(
            question.text,
            question.context,
            truncation="only_second",
            max_length=max_tokens,
            stride=int(room * STRIDE_SHARE),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        for w in range(len(encoded["input_ids"])):
            offsets = np.array(encoded["offset_mapping"][w], dtype=np.int64)  # (t, 2)
            in_context = np.array([part == 1 for part in encoded.sequence_ids(w)])
            offsets[~in_context] = -1
            start, end = _labels(question.answers[:1], offsets)
            row = {name: encoded[name][w] for name in tokenizer.model_input_names if name in encoded}
            row.pop("attention_mask", None)
            yield Window(i, {**row, "start_positions": start, "end_positions": end}, offsets)


def _labels(answers: Sequence[Span], offsets: NDArray[np.int64]) -> tuple[int, int]:
    """Tokens of the first answer; (0, 0), which is [CLS], where the window lacks it or a part of it."""
    if not answers:
        return 0, 0
    span = answers[0]
    covered = np.flatnonzero((offsets[:, 0] < span.end) & (offsets[:, 1] > span.start) & (offsets[:, 0] >= 0))
    if len(covered) == 0:
        return 0, 0
    first, last = int(covered[0]), int(covered[-1])
    is_whole = offsets[first, 0] <= span.start and offsets[last, 1] >= span.end
    return (first, last) if is_whole else (0, 0)


def _hold_out(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Whole paragraphs, so that no context is on both sides."""
    contexts = list(dict.fromkeys(question.context for question in questions))
    if len(contexts) < 2:
        raise InvalidInput("all questions are on one paragraph; give --validation, or more paragraphs")
    held = set(contexts[-max(1, len(contexts) // HELD_OUT_EVERY) :])
    return [q for q in questions if q.context not in held], [q for q in questions if q.context in held]


def _measure(
    questions: Sequence[Question], cut: Sequence[Window], *, collate: RoundingCollator, abstains: bool
) -> Measure:
    def measure(module: torch.nn.Module) -> Metrics:
        best = [(-np.inf, "")] * len(questions)
        nothing = [np.inf] * len(questions)
        for numbers, outputs in predict(module, [window.row for window in cut], collate):
            starts, ends = outputs["start_logits"].float().numpy(), outputs["end_logits"].float().numpy()
            for n, start, end in zip(numbers, starts, ends, strict=True):
                window = cut[n]
                context = questions[window.question].context
                best[window.question] = max(
                    best[window.question], best_span(start, end, window.offsets, context)
                )
                nothing[window.question] = min(nothing[window.question], float(start[0] + end[0]))
        return _metrics(questions, best, nothing, abstains=abstains)

    return measure


def best_span(
    start: NDArray[np.float32], end: NDArray[np.float32], offsets: NDArray[np.int64], context: str
) -> tuple[float, str]:
    """(score, text): the greatest start + end with start <= end and few tokens between.

    Args:
        start, end: logits (t,), padding included.
        offsets: (t', 2) with t' <= t.
    """
    allowed = np.flatnonzero(offsets[:, 0] >= 0)
    scores = start[allowed, None] + end[None, allowed]  # (c, c)
    length = np.arange(len(allowed))[None, :] - np.arange(len(allowed))[:, None]
    scores[(length < 0) | (length >= MAX_ANSWER_TOKENS)] = -np.inf
    first, last = np.unravel_index(int(scores.argmax()), scores.shape)
    text = context[offsets[allowed[first], 0] : offsets[allowed[last], 1]]
    return float(scores[first, last]), text


def _metrics(
    questions: Sequence[Question],
    best: Sequence[tuple[float, str]],
    nothing: Sequence[float],
    *,
    abstains: bool,
) -> Metrics:
    predicted = [
        "" if abstains and null > score else text for (score, text), null in zip(best, nothing, strict=True)
    ]
    expected = [question.answer_texts() for question in questions]
    pairs = list(zip(predicted, expected, strict=True))
    metrics = {
        "f1": float(np.mean([answer_f1(p, e) for p, e in pairs])),
        "exact_match": float(np.mean([exact_match(p, e) for p, e in pairs])),
    }
    answerable = [bool(question.answers) for question in questions]
    if len(set(answerable)) == 2:
        margin = [score - null for (score, _), null in zip(best, nothing, strict=True)]
        metrics["answerable_auroc"] = auroc(margin, answerable)
    return metrics
