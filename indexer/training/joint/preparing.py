"""The task `reader-reranker`: data, module and metrics of the joint model, ready to be trained."""

import random
from collections.abc import Sequence
from functools import partial

from app.engine.joint_network import JointModel
from app.engine.model_files import BiEncoderFiles, find_bi_encoder
from app.engine.models import load_tokenizer
from app.engine.torch_models import load_encoder
from app.errors import InvalidInput
from indexer.training.bases import Base
from indexer.training.freezing import freeze
from indexer.training.joint.groups import NO_ANSWER, Candidate, Group, read_groups
from indexer.training.joint.measuring import METRIC, measure_groups
from indexer.training.joint.pairs import PairEncoder
from indexer.training.joint.perturbing import unanswerable, without_answer
from indexer.training.joint.trainer import collator, freeze_word_embeddings
from indexer.training.prepared import Prepared
from indexer.training.request import TrainingRequest
from indexer.training.saving import save_trained_model

MAX_TOKENS = 384
"""Of a pair when the model is served, whatever it was trained on: BERT's positions go on to 512."""
TRAINING_TOKENS = 224
N_HELD_OUT = 12
"""Titles whose questions take no part in training."""
N_MEASURED = 400
CUT_SHARE = 0.25
"""Of the forms without an answer, made by cutting the passage; the others are changed questions."""


def prepare_joint(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `groups`.
        InvalidInput: nothing to train on, or to measure.
    """
    files = find_bi_encoder(request.base, offline=request.offline)
    choice = random.Random(request.seed)  # noqa: S311  a sample, not a secret
    groups = [group for path in request.paths for group in read_groups(path)]
    held_out = _held_out(groups, choice)
    trained = without_repetition([group for group in groups if _title(group) not in held_out])
    measured = [group for group in groups if _title(group) in held_out]
    measured = choice.sample(measured, min(N_MEASURED, len(measured)))
    changed = perturbed(trained, share=request.perturbed, choice=choice)
    max_tokens = min(request.max_tokens or TRAINING_TOKENS, base.max_tokens)
    encoder = PairEncoder(load_tokenizer(files), max_tokens=max_tokens, choice=choice)
    rows = [encoder.encode(group) for group in [*trained, *changed]]
    collate = collator(files.pad_id)
    module = _module(files, request)
    return Prepared(
        module=module,
        encoder=module.encoder,
        tokenizer=base.tokenizer(),
        rows=rows,
        lengths=[row.length for row in rows],
        collate=collate,
        measure_validation=measure_groups(
            [encoder.encode(group) for group in measured],
            collate=collate,
            batch_tokens=request.batch_tokens,
        ),
        measure_test=None,
        metric=METRIC,
        max_tokens=min(MAX_TOKENS, base.max_tokens),
        sizes={"train": len(trained), "changed to have no answer": len(changed), "held out": len(measured)},
        save=partial(
            save_trained_model,
            task="reader-reranker",
            architecture="JointModel",
            base=files,
            max_tokens=min(MAX_TOKENS, base.max_tokens),
        ),
        notes=[f"questions of {len(held_out)} titles were held out for validation"],
    )


def without_repetition(groups: Sequence[Group]) -> list[Group]:
    """Each question once: with its rivals, where it was mined, and else as it is."""
    richest: dict[str, Group] = {}
    for group in groups:
        before = richest.get(group.question)
        if before is None or len(group.candidates) > len(before.candidates):
            richest[group.question] = group
    return list(richest.values())


def perturbed(groups: Sequence[Group], *, share: float, choice: random.Random) -> list[Group]:
    """Of a share of the questions that have an answer, a form that has none: of the question, in the same
    passage, or of the passage, to the same question."""
    answered = [group for group in groups if group.candidates[0].answer not in (None, NO_ANSWER)]
    sampled = choice.sample(answered, round(share * len(answered)))
    made = (_without_answer(group, choice) for group in sampled)
    return [group for group in made if group is not None]


def _without_answer(group: Group, choice: random.Random) -> Group | None:
    first = group.candidates[0]
    assert first.answer is not None
    start, end = first.answer
    question: str | None = group.question
    text: str | None = first.text
    if choice.random() < CUT_SHARE:
        text = without_answer(first.text, first.answer)
    else:
        question = unanswerable(group.question, first.text, first.text[start:end], choice)
    if question is None or text is None:
        return None
    return Group(question, (Candidate(text, first.title, None, NO_ANSWER),))


def _held_out(groups: Sequence[Group], choice: random.Random) -> set[str]:
    titles = sorted({title for group in groups if (title := _title(group)) and _has_answer(group)})
    if len(titles) < 2:
        raise InvalidInput(
            "questions of at least two titles are needed, so that one can be held out to measure on"
        )
    return set(choice.sample(titles, min(N_HELD_OUT, len(titles) // 2)))


def _title(group: Group) -> str | None:
    return group.candidates[0].title


def _has_answer(group: Group) -> bool:
    return group.candidates[0].answer not in (None, NO_ANSWER)


def _module(files: BiEncoderFiles, request: TrainingRequest) -> JointModel:
    encoder = load_encoder(
        files,
        hidden_dropout_prob=request.dropout,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    freeze(encoder, request.freeze)
    module = JointModel(encoder, dimensions=files.dimensions, dropout=request.dropout)
    freeze_word_embeddings(module)
    return module
