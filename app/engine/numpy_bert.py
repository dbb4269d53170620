"""BERT written out in NumPy, for looking inside: one text at a time, every intermediate result at hand.

Source: Vaswani et al. 2017 and Devlin et al. 2019. Not what serves searches: that runs compiled, in int8.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from app.engine.pieces import Ids
from app.engine.tensors import Tensors
from app.errors import ModelUnavailable

Array = NDArray[np.float32]
F = TypeVar("F", bound=np.floating[Any])

PREFIX = "bert."
"""Of names in files that have a head beside the encoder."""


def gelu(x: Array) -> Array:
    """x * P(X <= x) for a standard normal X: the exact form, not its approximation by tanh."""
    result: Array = 0.5 * x * (1.0 + erf(x * np.float32(np.sqrt(0.5))))
    return result


def softmax(x: NDArray[F]) -> NDArray[F]:
    """Over the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    result: NDArray[F] = powers / powers.sum(axis=-1, keepdims=True)
    return result


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "tanh": np.tanh,
}


@dataclass(frozen=True, slots=True)
class EmbeddingParts:
    """What BERT adds up before its first layer: each (t, d)."""

    token: Array
    segment: Array
    position: Array
    output: Array
    """Layer norm of the sum."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one forward pass computes."""

    hidden: Array
    """(t, d), the last layer's output."""
    attention: Array
    """(layers, heads, t, t): how much each token (third axis) takes from each (last axis); rows sum to 1."""


class NumpyBert:
    """Safe to call from any thread; holds nothing that changes.

    Args:
        config: contents of `config.json`.
        tensors: names as transformers writes them, with or without a leading "bert.".

    Raises:
        ModelUnavailable: not a BERT, or one of a kind that is not written out here.
    """

    def __init__(self, config: Mapping[str, Any], tensors: Tensors) -> None:
        _check(config)
        self._tensors = tensors
        self._n_heads = int(config["num_attention_heads"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._activation = ACTIVATIONS[config.get("hidden_act", "gelu")]
        self.n_layers = int(config["num_hidden_layers"])
        self.n_heads = self._n_heads
        self.dimensions = int(config["hidden_size"])
        self.max_positions = int(config["max_position_embeddings"])

    def has(self, name: str) -> bool:
        return name in self._tensors

    def embed(self, ids: Ids, segments: Ids) -> EmbeddingParts:
        """Of (t,) ids and segment ids."""
        token = self._rows("embeddings.word_embeddings.weight", ids)
        segment = self._rows("embeddings.token_type_embeddings.weight", segments)
        position = self._rows("embeddings.position_embeddings.weight", np.arange(len(ids)))
        output = self._normalize("embeddings.LayerNorm", token + segment + position)
        return EmbeddingParts(token, segment, position, output)

    def forward(self, ids: Ids, segments: Ids) -> Pass:
        hidden = self.embed(ids, segments).output  # (t, d)
        attentions = []
        for number in range(self.n_layers):
            layer = f"encoder.layer.{number}"
            weights = self._attention(layer, hidden)  # (h, t, t)
            attended = weights @ self._heads(f"{layer}.attention.self.value", hidden)  # (h, t, d/h)
            joined = attended.transpose(1, 0, 2).reshape(hidden.shape)
            attended = self._linear(f"{layer}.attention.output.dense", joined)
            hidden = self._normalize(f"{layer}.attention.output.LayerNorm", hidden + attended)
            inner = self._activation(self._linear(f"{layer}.intermediate.dense", hidden))
            outer = self._linear(f"{layer}.output.dense", inner)
            hidden = self._normalize(f"{layer}.output.LayerNorm", hidden + outer)
            attentions.append(weights)
        return Pass(hidden, np.stack(attentions))

    def token_logits(self, hidden: Array) -> Array:
        """(n, vocabulary): the masked language model's head on (n, d) of the last layer (Devlin, 3.1)."""
        transformed = self._activation(self._linear("cls.predictions.transform.dense", hidden))
        transformed = self._normalize("cls.predictions.transform.LayerNorm", transformed)
        logits: Array = transformed @ self._get("embeddings.word_embeddings.weight").T
        return logits + self._get("cls.predictions.bias")

    def next_sentence_logits(self, hidden: Array) -> Array:
        """(2,): the second text follows, or is a random one; from (t, d) of the last layer."""
        pooled = np.tanh(self._linear("pooler.dense", hidden[:1]))
        logits: Array = self._linear("cls.seq_relationship", pooled)[0]
        return logits

    def _attention(self, layer: str, hidden: Array) -> Array:
        """softmax(Q K^T / sqrt(d/h)) of each head, (h, t, t)."""
        queries = self._heads(f"{layer}.attention.self.query", hidden)
        keys = self._heads(f"{layer}.attention.self.key", hidden)
        scale = np.float32(1.0 / np.sqrt(queries.shape[-1]))
        return softmax(queries @ keys.transpose(0, 2, 1) * scale)

    def _heads(self, name: str, hidden: Array) -> Array:
        """(h, t, d/h)"""
        split = self._linear(name, hidden).reshape(len(hidden), self._n_heads, -1)
        return split.transpose(1, 0, 2)

    def _linear(self, name: str, x: Array) -> Array:
        result: Array = x @ self._get(f"{name}.weight").T + self._get(f"{name}.bias")
        return result

    def _normalize(self, name: str, x: Array) -> Array:
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        standard: Array = (x - mean) / np.sqrt(variance + np.float32(self._epsilon))
        return standard * self._get(f"{name}.weight") + self._get(f"{name}.bias")

    def _rows(self, name: str, places: NDArray[np.integer]) -> Array:
        return self._tensors.rows(self._found(name), places)

    def _get(self, name: str) -> Array:
        return self._tensors[self._found(name)]

    def _found(self, name: str) -> str:
        for candidate in (PREFIX + name, name):
            if candidate in self._tensors:
                return candidate
        raise ModelUnavailable(f"the model's weights have no {name}")


def _check(config: Mapping[str, Any]) -> None:
    kind, activation = config.get("model_type"), config.get("hidden_act", "gelu")
    if kind != "bert":
        raise ModelUnavailable(f"looking inside works for models of type bert, this one is of type {kind}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ModelUnavailable("looking inside works for absolute position embeddings only")
    if activation not in ACTIVATIONS:
        raise ModelUnavailable(f"the activation {activation!r} is not one of {', '.join(ACTIVATIONS)}")
