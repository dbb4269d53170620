"""A base with an untrained head that knows its labels."""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel

from indexer.training.bases import Base, loading
from indexer.training.freezing import freeze
from indexer.training.request import TrainingRequest


def module_with_labels(
    kind: Any, request: TrainingRequest, base: Base, labels: Sequence[str]
) -> PreTrainedModel:
    """
    Args:
        kind: a class of transformers such as `AutoModelForTokenClassification`.
        labels: in the order of the outputs.
    """
    module: PreTrainedModel = kind.from_pretrained(
        base.folder,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
        **loading(base, dropout=request.dropout),
    )
    freeze(module.base_model, request.freeze)
    return module
