"""transformers' Trainer with batches cut by tokens and metrics of the task."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.utils.data import DataLoader, Sampler
from transformers import Trainer, TrainerCallback, TrainingArguments

from app.errors import InvalidInput, StorageFull, TrainingFailed
from indexer.training.batching import TokenBatches
from indexer.training.checkpoints import CHECKPOINTS, latest_checkpoint
from indexer.training.optimiser import adamw, uses_bf16
from indexer.training.prepared import Measure, Prepared, Row
from indexer.training.request import PretrainingRequest, TrainingRequest

N_LOG_LINES = 200
"""About as many losses are logged in a training, each the mean since the one before."""
Request = TrainingRequest | PretrainingRequest

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WatchedTrainer(Trainer):
    """A Trainer whose loss stays finite, whose metrics are the task's, and that says when the disk is full.

    `measure` must be set before it trains; it decides which checkpoint is best.
    """

    measure: Measure

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        """
        Raises:
            TrainingFailed: the loss is not finite.
        """
        loss: torch.Tensor = super().training_step(*arguments, **options)
        check_finite(loss, self)
        return loss

    def evaluate(self, *_given: Any, metric_key_prefix: str = "eval", **_named: Any) -> dict[str, float]:
        assert isinstance(self.model, torch.nn.Module)
        measured = self.measure(self.model)
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in measured.items()}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        with writing(Path(str(self.args.output_dir))):
            super()._save_checkpoint(model, trial)


class TokenTrainer(WatchedTrainer):
    """
    Args:
        batches: gives the places of the rows of each batch.
    """

    def __init__(self, *, batches: Sampler[list[int]], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._batches = batches

    def get_train_dataloader(self) -> DataLoader[Row]:
        rows: Any = self.train_dataset
        loader = DataLoader(rows, batch_sampler=self._batches, collate_fn=self.data_collator)
        prepared: DataLoader[Row] = self.accelerator.prepare(loader)
        return prepared


class TokenCounter:
    """Counts the tokens that an encoder is trained on, padding included, where they enter it."""

    def __init__(self, encoder: Any) -> None:
        self.n_tokens = 0
        encoder.get_input_embeddings().register_forward_pre_hook(self._count)

    def _count(self, embeddings: torch.nn.Module, given: tuple[torch.Tensor]) -> None:
        if embeddings.training:
            self.n_tokens += given[0].numel()


class writing:  # noqa: N801  a context, read as "with writing(folder)"
    """Turns a write that failed for want of space into an error that says how to go on.

    Raises:
        StorageFull
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        number = getattr(error, "errno", None)
        is_full = number in FULL or (
            isinstance(error, RuntimeError | SafetensorError)
            and any(
                sign in str(error)
                for sign in ("No space left", "File too large", "unexpected pos", "PytorchStreamWriter")
            )
        )
        if is_full:
            kept = latest_checkpoint(self._folder)
            raise StorageFull(
                f"no space to write into {self._folder}; "
                + (f"make room and go on from {kept.name} with --resume" if kept else "nothing was kept")
            ) from error


def check_finite(loss: torch.Tensor, trainer: Trainer) -> None:
    """
    Raises:
        TrainingFailed
    """
    if torch.isfinite(loss).all():
        return
    kept = latest_checkpoint(Path(str(trainer.args.output_dir)))
    raise TrainingFailed(
        f"the loss became {float(loss.detach().mean())} at step {trainer.state.global_step + 1}: the "
        f"learning rate of {trainer.args.learning_rate} is probably too high, lower it"
        + (f"; the last checkpoint before is {kept}" if kept else "")
    )


def new_trainer(
    request: TrainingRequest, prepared: Prepared, callbacks: Sequence[TrainerCallback]
) -> WatchedTrainer:
    """
    Raises:
        InvalidInput: there is nothing to train on, or nothing that learns.
    """
    batches = token_batches(request, prepared)
    return new_token_trainer(TokenTrainer, request, prepared, callbacks, batches, n_batches=len(batches))


def new_token_trainer(
    kind: type[TokenTrainer],
    request: TrainingRequest,
    prepared: Prepared,
    callbacks: Sequence[TrainerCallback],
    batches: Sampler[list[int]],
    *,
    n_batches: int,
) -> WatchedTrainer:
    trainer = kind(
        batches=batches,
        model=prepared.module,
        args=TrainingArguments(**arguments(request, n_batches=n_batches, metric=prepared.metric)),
        train_dataset=prepared.rows,
        eval_dataset=prepared.rows[:1],  # the Trainer asks for one; `measure` has its own
        data_collator=prepared.collate,
        processing_class=prepared.tokenizer,
        optimizers=(optimizer(request, prepared), None),
        callbacks=list(callbacks),
    )
    trainer.measure = prepared.measure_validation
    return trainer


def token_batches(request: Request, prepared: Prepared) -> TokenBatches:
    if len(prepared.lengths) == 0:
        raise InvalidInput("nothing is left to train on")
    return TokenBatches(prepared.lengths, batch_tokens=request.batch_tokens, seed=request.seed)


def optimizer(request: Request, prepared: Prepared) -> torch.optim.AdamW:
    return adamw(
        prepared.module,
        encoder=prepared.encoder,
        learning_rate=request.learning_rate,
        head_rate=request.head_rate,
        weight_decay=request.weight_decay,
    )


def arguments(request: Request, *, n_batches: int, metric: str) -> dict[str, Any]:
    """Of `TrainingArguments`, for any of the trainers."""
    n_steps = max(1, round(n_batches / request.accumulate * request.epochs))
    if request.max_steps > 0:
        n_steps = request.max_steps
    decay = request.decay if isinstance(request, TrainingRequest) else 1.0
    schedule: dict[str, Any] = {"lr_scheduler_type": "linear"}
    if decay < 1:
        schedule = {
            "lr_scheduler_type": "warmup_stable_decay",
            "lr_scheduler_kwargs": {"num_decay_steps": max(1, round(decay * n_steps))},
        }
    return {
        **schedule,
        "output_dir": str(request.output / CHECKPOINTS),
        "num_train_epochs": request.epochs,
        "max_steps": request.max_steps,
        "learning_rate": request.learning_rate,
        "warmup_steps": round(request.warmup * n_steps),
        "weight_decay": request.weight_decay,
        "gradient_accumulation_steps": request.accumulate,
        "optim": "adamw_torch_fused",
        "use_cpu": not torch.cuda.is_available(),
        "bf16": uses_bf16(request.precision),
        "seed": request.seed,
        "logging_steps": max(1, n_steps // N_LOG_LINES),
        "logging_nan_inf_filter": False,
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "save_total_limit": 2,
        "load_best_model_at_end": True,
        "metric_for_best_model": metric,
        "greater_is_better": True,
        "remove_unused_columns": False,
        "dataloader_pin_memory": False,
        "disable_tqdm": True,
        "report_to": "none",
    }
