"""A pretraining from its request to its files."""

import dataclasses
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers
from transformers import PreTrainedTokenizerBase, TrainingArguments

from app.engine.quiet_transformers import quiet
from app.errors import InvalidInput
from indexer.training.bases import find_base
from indexer.training.batching import TokenBatches
from indexer.training.callbacks import LOG, CheckpointByClock, Interruption, Log, Show
from indexer.training.curves import PICTURE, write_curve
from indexer.training.freezing import freeze
from indexer.training.predicting import BATCH_TOKENS
from indexer.training.prepared import Measure, Prepared, Row
from indexer.training.pretraining.corpus import Document, read_documents
from indexer.training.pretraining.masking import PAIR_LABELS, MaskingCollator
from indexer.training.pretraining.networks import losses, new_network
from indexer.training.pretraining.segments import segments
from indexer.training.request import Metrics, PretrainingRequest
from indexer.training.results import write_results
from indexer.training.running import (
    MODEL,
    Trained,
    claim_output,
    finished_module,
    result_of,
    run,
    write_request,
)
from indexer.training.trainer import TokenCounter, TokenTrainer, arguments, optimizer, token_batches, writing

PAIR_NAMES = {"mlm+nsp": "nsp_accuracy", "mlm+sop": "sop_accuracy"}
METRIC = "mlm_accuracy"


class PretrainingTrainer(TokenTrainer):
    with_pairs: bool

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *_given: Any, **_named: Any) -> Any:
        device = inputs["input_ids"].device.type
        with torch.autocast(device, dtype=torch.bfloat16, enabled=self.args.bf16):
            return losses(model, dict(inputs), with_pairs=self.with_pairs).total


def pretrain(request: PretrainingRequest, show: Show = lambda _line: None) -> Trained:
    """Pretrain, measure before and after on held-out documents, and write what `running.train` writes.

    Raises:
        As `running.train`.
    """
    quiet()
    base = find_base(request.base, offline=request.offline)
    checkpoint = claim_output(request)
    transformers.set_seed(request.seed)
    prepared = prepare(request)
    write_request(request)
    before = prepared.measure_validation(prepared.module)
    counter = TokenCounter(prepared.encoder)
    interruption = Interruption()
    trainer = _trainer(
        request,
        prepared,
        [
            CheckpointByClock(request.checkpoint_s),
            interruption,
            Log(request.output / LOG, n_tokens=lambda: counter.n_tokens, show=show),
        ],
    )
    seconds = run(trainer, checkpoint, interruption)
    module = finished_module(trainer)
    result = result_of(request, prepared, trainer, seconds, n_tokens=counter.n_tokens)
    result = dataclasses.replace(result, before=before)
    with writing(request.output):
        write_results(result, request, request.output)
        write_curve(request.output / LOG, request.output / PICTURE, metric=METRIC)
        module.save_pretrained(request.output / MODEL)
        prepared.tokenizer.save_pretrained(request.output / MODEL)
    return Trained(result, module, base, prepared)


def prepare(request: PretrainingRequest) -> Prepared:
    """
    Raises:
        BadFile, InvalidInput: see `corpus` and `segments`.
    """
    base = find_base(request.base, offline=request.offline)
    tokenizer = base.tokenizer()
    limit = base.max_tokens if request.config is None else request.max_tokens
    max_tokens = min(request.max_tokens, limit)
    documents = read_documents(request.paths)
    held_out, kept = _divided(documents, share=request.held_out, seed=request.seed)
    random = np.random.default_rng(request.seed)
    rows_of = partial(_rows, request=request, tokenizer=tokenizer, max_tokens=max_tokens, random=random)
    rows, measured = rows_of(kept), rows_of(held_out)
    module = new_network(request, base, tokenizer)
    freeze(module.base_model, request.freeze)
    return Prepared(
        module=module,
        encoder=module.base_model,
        tokenizer=tokenizer,
        rows=rows,
        lengths=[len(row["input_ids"]) for row in rows],
        collate=MaskingCollator(tokenizer, whole_words=request.whole_words, max_tokens=max_tokens),
        measure_validation=_measure(measured, request, tokenizer, max_tokens),
        measure_test=None,
        metric=METRIC,
        max_tokens=max_tokens,
        sizes={
            "documents": len(kept),
            "inputs": len(rows),
            "held-out documents": len(held_out),
            "held-out inputs": len(measured),
        },
    )


def _divided(
    documents: Sequence[Document], *, share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """(held out, kept): at least one document is held out and one kept.

    Raises:
        InvalidInput: there are too few documents.
    """
    n = max(1, round(share * len(documents)))
    if len(documents) < 2 or n >= len(documents):
        raise InvalidInput(
            f"the corpus has {len(documents)} document(s), of which {n} would be held out; give more "
            "(a blank line ends one in a text file)"
        )
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    return [documents[i] for i in order[:n]], [documents[i] for i in order[n:]]


def _rows(
    documents: Sequence[Document],
    *,
    request: PretrainingRequest,
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    random: np.random.Generator,
) -> list[Row]:
    """
    Raises:
        InvalidInput: no input is left.
    """
    n_special = tokenizer.num_special_tokens_to_add(pair=request.objective != "mlm")
    made = segments(
        [tokenizer(list(document), add_special_tokens=False)["input_ids"] for document in documents],
        objective=request.objective,
        max_tokens=max_tokens - n_special,
        random=random,
    )
    if not made:
        raise InvalidInput("the corpus is too short to make one input of it")
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    for each in made:
        first, second = [cls, *each.first, sep], [*each.second, sep] if each.second else []
        row: Row = {
            "input_ids": first + second,
            "special_tokens_mask": [int(token in (cls, sep)) for token in first + second],
            PAIR_LABELS: each.label,
        }
        if "token_type_ids" in tokenizer.model_input_names:
            row["token_type_ids"] = [0] * len(first) + [1] * len(second)
        rows.append(row)
    return rows


def _measure(
    rows: Sequence[Row], request: PretrainingRequest, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Measure:
    """Always with the same words masked."""
    collate = MaskingCollator(
        tokenizer, whole_words=request.whole_words, max_tokens=max_tokens, seed=request.seed
    )
    cut = TokenBatches([len(row["input_ids"]) for row in rows], batch_tokens=BATCH_TOKENS, seed=None)
    batches = [dict(collate([rows[i] for i in numbers])) for numbers in cut]
    pair_name = PAIR_NAMES.get(request.objective)

    def measure(module: torch.nn.Module) -> Metrics:
        module.eval()
        device = next(module.parameters()).device
        loss, n_masked, n_right, n_pairs_right = 0.0, 0, 0, 0
        for batch in batches:
            given = {name: tensor.to(device) for name, tensor in batch.items()}
            with torch.inference_mode():
                found = losses(module, given, with_pairs=pair_name is not None)
            loss += float(found.mlm) * found.n_masked
            n_masked += found.n_masked
            n_right += found.n_words_right
            n_pairs_right += found.n_pairs_right
        mean = loss / max(n_masked, 1)
        metrics = {
            "mlm_loss": mean,
            "perplexity": math.exp(min(mean, 50.0)),
            METRIC: n_right / max(n_masked, 1),
        }
        return metrics | ({pair_name: n_pairs_right / len(rows)} if pair_name else {})

    return measure


def _trainer(
    request: PretrainingRequest, prepared: Prepared, callbacks: list[transformers.TrainerCallback]
) -> PretrainingTrainer:
    batches = token_batches(request, prepared)
    trainer = PretrainingTrainer(
        batches=batches,
        model=prepared.module,
        args=TrainingArguments(**arguments(request, n_batches=len(batches), metric=METRIC)),
        train_dataset=prepared.rows,
        eval_dataset=prepared.rows[:1],  # the Trainer asks for one; `measure` has its own
        data_collator=prepared.collate,
        processing_class=prepared.tokenizer,
        optimizers=(optimizer(request, prepared), None),
        callbacks=callbacks,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.measure = prepared.measure_validation
    trainer.with_pairs = request.objective != "mlm"
    return trainer
