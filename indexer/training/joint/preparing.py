"""The task `reader-reranker`: data, module and metrics of the joint model, ready to be trained."""

import random
from collections.abc import Sequence
from functools import partial

from app.engine.joint_network import JointModel
from app.engine.model_files import BiEncoderFiles, find_bi_encoder
from app.engine.models import load_tokenizer
from app.engine.torch_models import load_encoder
from indexer.training.bases import Base
from indexer.training.freezing import freeze
from indexer.training.joint.groups import Group, read_groups
from indexer.training.joint.held_out import (
    has_answer,
    held_out_titles,
    title_of,
    write_calibration,
)
from indexer.training.joint.measuring import METRIC, measure_groups
from indexer.training.joint.pairs import PairEncoder
from indexer.training.joint.perturbing import without_an_answer
from indexer.training.joint.trainer import collator, freeze_word_embeddings
from indexer.training.prepared import Prepared
from indexer.training.request import TrainingRequest
from indexer.training.saving import save_trained_model

MAX_TOKENS = 384
"""Of a pair when the model is served, whatever it was trained on: BERT's positions go on to 512."""
TRAINING_TOKENS = 224
N_MEASURED = 400


def prepare_joint(request: TrainingRequest, base: Base) -> Prepared:
    """
    Raises:
        BadFile: see `groups`.
        InvalidInput: nothing to train on, or to measure.
    """
    files = find_bi_encoder(request.base, offline=request.offline)
    choice = random.Random(request.seed)  # noqa: S311  a sample, not a secret
    groups = [group for path in request.paths for group in read_groups(path)]
    titles = held_out_titles(groups, choice)
    trained = without_repetition([group for group in groups if title_of(group) not in titles])
    held_out = [group for group in groups if title_of(group) in titles]
    write_calibration(held_out, request.output, choice)
    measured = choice.sample(held_out, min(N_MEASURED, len(held_out)))
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
        notes=[f"questions of {len(titles)} titles were held out for validation"],
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
    answered = [group for group in groups if has_answer(group)]
    sampled = choice.sample(answered, round(share * len(answered)))
    made = (without_an_answer(group, choice) for group in sampled)
    return [group for group in made if group is not None]


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
