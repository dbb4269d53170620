"""The Trainer of transformers with the joint model's batches, losses and learning rates."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import Trainer

from app.engine.joint_network import JointModel
from indexer.training.joint.batches import TokenBatches
from indexer.training.joint.losses import ranking_loss, span_loss
from indexer.training.joint.pairs import EncodedGroup, as_arrays

RANKING_WEIGHT = 0.5
NO_ANSWER_WEIGHT = 0.35
"""Of a pair without an answer in the span loss, next to 1 for one with an answer."""
HEAD_FACTOR = 5.0
"""Learning rate of the new heads over that of the encoder."""


class Groups(Dataset[EncodedGroup]):
    def __init__(self, groups: Sequence[EncodedGroup]) -> None:
        self.groups = groups

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, place: int) -> EncodedGroup:
        return self.groups[place]

    def batches(self, *, max_batch_tokens: int, seed: int) -> TokenBatches:
        lengths = [group.length for group in self.groups]
        sizes = [len(group.pairs) for group in self.groups]
        return TokenBatches(lengths, sizes, max_batch_tokens=max_batch_tokens, seed=seed)


class JointTrainer(Trainer):
    """
    Args:
        max_batch_tokens: of one forward pass, padding included.
        pad_id: token id that fills up short pairs.
    """

    def __init__(self, *, max_batch_tokens: int, pad_id: int, **options: Any) -> None:
        super().__init__(**options)
        self._max_batch_tokens = max_batch_tokens
        self._collate = collator(pad_id)

    def get_train_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.train_dataset, seed=self.args.seed)

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[Any]:
        return self._loader(eval_dataset or self.eval_dataset, seed=0)

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

    def create_optimizer(self, *_: Any, **__: Any) -> torch.optim.Optimizer:
        """Heads learn faster than the encoder, which has learnt already; no decay on norms and biases."""
        if self.optimizer is None:
            groups: dict[tuple[bool, bool], list[torch.nn.Parameter]] = {}
            assert self.model is not None
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    key = (not name.startswith("encoder."), parameter.ndim < 2)
                    groups.setdefault(key, []).append(parameter)
            self.optimizer = torch.optim.AdamW(
                [
                    {
                        "params": parameters,
                        "lr": self.args.learning_rate * (HEAD_FACTOR if is_head else 1.0),
                        "weight_decay": 0.0 if is_plain else self.args.weight_decay,
                    }
                    for (is_head, is_plain), parameters in groups.items()
                ],
                fused=True,
            )
        return self.optimizer

    def log(self, logs: dict[str, float], *args: Any, **options: Any) -> None:
        for name, values in self._noted().items():
            if values and "loss" in logs:
                logs[f"loss_{name}"] = round(float(np.mean(values)), 4)
                values.clear()
        super().log(logs, *args, **options)

    def _noted(self) -> dict[str, list[float]]:
        if not hasattr(self, "_parts"):
            self._parts: dict[str, list[float]] = {"spans": [], "ranking": []}
        return self._parts

    def _note(self, name: str, value: torch.Tensor) -> None:
        if self.model is not None and self.model.training and (number := float(value.detach())) != 0.0:
            self._noted()[name].append(number)

    def _loader(self, dataset: Any, *, seed: int) -> DataLoader[Any]:
        batches = dataset.batches(max_batch_tokens=self._max_batch_tokens, seed=seed)
        return DataLoader(dataset, batch_sampler=batches, collate_fn=self._collate)


def collator(pad_id: int) -> Callable[[Sequence[EncodedGroup]], dict[str, torch.Tensor]]:
    def collate(groups: Sequence[EncodedGroup]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(array) for name, array in as_arrays(groups, pad_id=pad_id).items()}

    return collate


def freeze_word_embeddings(model: JointModel) -> None:
    """They are most of the weights, hardly change, and come from the base when the model is loaded."""
    model.encoder.get_parameter("embeddings.word_embeddings.weight").requires_grad = False
