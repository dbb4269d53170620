"""What the trainers of sentence-transformers have in common here: batches cut by tokens, and own metrics."""

from collections.abc import Sequence
from typing import Any

import transformers
from transformers import TrainerCallback

from indexer.training.prepared import Prepared
from indexer.training.request import TrainingRequest
from indexer.training.trainer import WatchedTrainer, arguments, optimizer


class PairTrainer(WatchedTrainer):
    """To be put before a trainer of sentence-transformers."""

    batches: Any
    """Row numbers of each batch."""

    def get_batch_sampler(self, *_given: Any, **_named: Any) -> Any:
        return self.batches

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """None: the card is made from the results (`cards`)."""


def new_pair_trainer(
    kind: type[PairTrainer],
    arguments_kind: type[transformers.TrainingArguments],
    request: TrainingRequest,
    prepared: Prepared,
    callbacks: Sequence[TrainerCallback],
    *,
    batches: Any,
) -> WatchedTrainer:
    optimizers: Any = (optimizer(request, prepared), None)
    options: dict[str, Any] = {
        "model": prepared.module,
        "args": arguments_kind(**arguments(request, n_batches=len(batches), metric=prepared.metric)),
        "train_dataset": prepared.rows,
        "eval_dataset": prepared.rows.select(range(1)),  # the Trainer asks for one; `measure` has its own
        "loss": prepared.loss,
        "optimizers": optimizers,
        "callbacks": list(callbacks),
    }
    trainer = kind(**options)
    trainer.measure = prepared.measure_validation
    trainer.batches = batches
    return trainer
