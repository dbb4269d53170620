"""The Trainer of transformers with the joint model's batches and losses."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from app.engine.joint_network import JointModel
from indexer.training.joint.batches import GroupBatches
from indexer.training.joint.losses import ranking_loss, span_loss
from indexer.training.joint.pairs import EncodedGroup, as_arrays
from indexer.training.prepared import Prepared
from indexer.training.request import TrainingRequest
from indexer.training.trainer import TokenTrainer, WatchedTrainer, new_token_trainer

RANKING_WEIGHT = 0.5
NO_ANSWER_WEIGHT = 0.35
"""Of a pair without an answer in the span loss, next to 1 for one with an answer."""


class JointTrainer(TokenTrainer):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parts: dict[str, list[float]] = {"spans": [], "ranking": []}

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,  # noqa: ARG002  given by Trainer
    ) -> Any:
        relevance, start, end = model(inputs["input_ids"], inputs["attention_mask"], inputs["token_type_ids"])
        weight = torch.where(inputs["start"] > 0, 1.0, NO_ANSWER_WEIGHT)
        spans = span_loss(
            start,
            end,
            start=inputs["start"],
            end=inputs["end"],
            allowed=inputs["allowed"],
            weight=weight,
        )
        ranking = ranking_loss(relevance, relevance=inputs["relevance"], group=inputs["group"])
        loss = spans + RANKING_WEIGHT * ranking
        self._note("spans", spans)
        self._note("ranking", ranking)
        return (loss, {"logits": relevance}) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **options: Any) -> None:
        for name, values in self._parts.items():
            if values and "loss" in logs:
                logs[f"loss_{name}"] = round(float(np.mean(values)), 4)
                values.clear()
        super().log(logs, *args, **options)

    def _note(self, name: str, value: torch.Tensor) -> None:
        if self.model is not None and self.model.training and (number := float(value.detach())) != 0.0:
            self._parts[name].append(number)


def new_joint_trainer(
    request: TrainingRequest, prepared: Prepared, callbacks: Sequence[TrainerCallback]
) -> WatchedTrainer:
    batches = GroupBatches(
        prepared.lengths,
        [len(group.pairs) for group in prepared.rows],
        max_batch_tokens=request.batch_tokens,
        seed=request.seed,
    )
    return new_token_trainer(JointTrainer, request, prepared, callbacks, batches, n_batches=len(batches))


def collator(pad_id: int) -> Callable[[Sequence[EncodedGroup]], dict[str, torch.Tensor]]:
    def collate(groups: Sequence[EncodedGroup]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(array) for name, array in as_arrays(groups, pad_id=pad_id).items()}

    return collate


def freeze_word_embeddings(model: JointModel) -> None:
    """They are most of the weights, hardly change, and come from the base when the model is loaded."""
    model.encoder.get_parameter("embeddings.word_embeddings.weight").requires_grad = False
