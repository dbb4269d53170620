"""A training from its request to its files."""

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import EarlyStoppingCallback

from app.engine.quiet_transformers import quiet
from app.errors import BifocalError, Conflict, InvalidInput
from indexer.training.bases import Base, find_base
from indexer.training.bi_encoder import new_bi_encoder_trainer, prepare_bi_encoder
from indexer.training.callbacks import LOG, CheckpointByClock, Interruption, Log, Show
from indexer.training.checkpoints import CHECKPOINTS, latest_checkpoint
from indexer.training.cross_encoder import new_cross_encoder_trainer, prepare_cross_encoder
from indexer.training.curves import PICTURE, write_curve
from indexer.training.freezing import trainable_parameters
from indexer.training.joint.preparing import prepare_joint
from indexer.training.joint.trainer import new_joint_trainer
from indexer.training.prepared import Prepared
from indexer.training.reader import prepare_reader
from indexer.training.request import PretrainingRequest, Task, TrainingRequest
from indexer.training.results import TrainingResult, peak_memory_bytes, write_results
from indexer.training.sequence import prepare_sequence
from indexer.training.token import prepare_token
from indexer.training.trainer import TokenCounter, WatchedTrainer, new_trainer, writing

REQUEST = "request.json"
MODEL = "model"
"""Folder of the trained model in the output, in the layout of Hugging Face; of a joint model in ours."""
FREE = {"resume", "checkpoint_s", "output", "offline", "epochs", "max_steps"}
"""Settings that may change when a training is resumed."""

Prepare = Callable[[TrainingRequest, Base], Prepared]
NewTrainer = Callable[[TrainingRequest, Prepared, Sequence[transformers.TrainerCallback]], WatchedTrainer]

TASKS: Mapping[Task, tuple[Prepare, NewTrainer]] = {
    "sequence": (prepare_sequence, new_trainer),
    "token": (prepare_token, new_trainer),
    "reader": (prepare_reader, new_trainer),
    "bi-encoder": (prepare_bi_encoder, new_bi_encoder_trainer),
    "cross-encoder": (prepare_cross_encoder, new_cross_encoder_trainer),
    "reader-reranker": (prepare_joint, new_joint_trainer),
}


class TrainingInterrupted(BifocalError):
    pass


@dataclasses.dataclass(frozen=True, slots=True)
class Trained:
    """A finished training with its module, for whoever saves it elsewhere, too."""

    result: TrainingResult
    module: Any
    base: Base
    prepared: Prepared


def train(request: TrainingRequest, show: Show = lambda _line: None) -> Trained:
    """Train, measure, and write into the output: checkpoints, log, curve, results and the model.

    Raises:
        BadFile, InvalidInput: the examples or the request; the message names file and line.
        ModelUnavailable: the base.
        Conflict: the output holds another training.
        TrainingFailed, StorageFull, TrainingInterrupted: the training ended early; --resume goes on.
    """
    quiet()
    base = find_base(request.base, offline=request.offline)
    checkpoint = claim_output(request)
    transformers.set_seed(request.seed)
    prepare, new = TASKS[request.task]
    prepared = prepare(request, base)
    write_request(request)
    counter = TokenCounter(prepared.encoder)
    interruption = Interruption()
    callbacks = [
        CheckpointByClock(request.checkpoint_s),
        interruption,
        Log(request.output / LOG, n_tokens=lambda: counter.n_tokens, show=show),
        *([EarlyStoppingCallback(request.patience)] if request.patience else []),
    ]
    trainer = new(request, prepared, callbacks)
    trainer.remove_callback(transformers.PrinterCallback)
    seconds = run(trainer, checkpoint, interruption)
    module = finished_module(trainer)
    result = result_of(request, prepared, trainer, seconds, n_tokens=counter.n_tokens)
    with writing(request.output):
        write_results(result, request, request.output)
        write_curve(request.output / LOG, request.output / PICTURE, metric=prepared.metric)
        if prepared.save is not None:
            prepared.save(module, request.output / MODEL)
        else:
            module.save_pretrained(request.output / MODEL)
            prepared.tokenizer.save_pretrained(request.output / MODEL)
    return Trained(result, module, base, prepared)


def claim_output(request: TrainingRequest | PretrainingRequest) -> Path | None:
    """The checkpoint to go on from, if that is asked for and there is one.

    Raises:
        Conflict: the output holds a training, and going on was not asked for, or not with the same settings.
    """
    file = request.output / REQUEST
    asked = _as_json(request)
    if file.is_file():
        if not request.resume:
            raise Conflict(f"{request.output} holds a training; go on with --resume or name another --output")
        before = json.loads(file.read_bytes())
        changed = sorted(name for name in asked if name not in FREE and before.get(name) != asked[name])
        if changed:
            raise Conflict(
                f"{request.output} was begun with another {', '.join(changed)}; give the same, or another "
                "--output"
            )
    return latest_checkpoint(request.output / CHECKPOINTS) if request.resume else None


def write_request(request: TrainingRequest | PretrainingRequest) -> None:
    """From here on the output holds this training."""
    request.output.mkdir(parents=True, exist_ok=True)
    written = json.dumps(_as_json(request), indent=2)
    (request.output / REQUEST).write_text(written + "\n", encoding="utf-8")


def _as_json(request: TrainingRequest | PretrainingRequest) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(request), default=str))
    return asked


def run(trainer: transformers.Trainer, checkpoint: Path | None, interruption: Interruption) -> float:
    """Train to the end; gives the seconds.

    Raises:
        TrainingInterrupted
    """
    began = time.monotonic()
    with interruption.watching():
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if interruption.is_asked and trainer.state.global_step < trainer.state.max_steps:
        raise TrainingInterrupted(
            f"interrupted after step {trainer.state.global_step} of {trainer.state.max_steps}; "
            "repeat the command with --resume to go on from there"
        )
    return time.monotonic() - began


def finished_module(trainer: transformers.Trainer) -> Any:
    """Without mixed precision, and with what was trained rounded as it will be stored."""
    module = trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.copy_(parameter.half().float())
    return module


def result_of(
    request: TrainingRequest | PretrainingRequest,
    prepared: Prepared,
    trainer: WatchedTrainer,
    seconds: float,
    *,
    n_tokens: int,
) -> TrainingResult:
    peak = peak_memory_bytes()
    module = prepared.module
    return TrainingResult(
        task=request.task if isinstance(request, TrainingRequest) else request.objective,
        base=request.base,
        freeze=request.freeze,
        metric=prepared.metric,
        validation=prepared.measure_validation(module),
        test=prepared.measure_test(module) if prepared.measure_test else {},
        n_parameters=sum(p.numel() for p in module.parameters()),
        n_trainable=trainable_parameters(module),
        n_steps=trainer.state.global_step,
        n_tokens=n_tokens,
        seconds=round(seconds, 1),
        peak_memory_bytes=peak,
        sizes=prepared.sizes,
        notes=tuple(prepared.notes),
    )


def unknown_task(name: str) -> InvalidInput:
    return InvalidInput(f"the task {name!r} is not known; allowed are {', '.join(TASKS)}")
