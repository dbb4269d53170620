"""The models that can be looked into, each opened when it is first asked for."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from app.engine.head_files import HeadFiles
from app.engine.inspection import InspectedModel
from app.engine.model_files import BiEncoderFiles, find_bi_encoder, read_json
from app.engine.numpy_bert import NumpyBert
from app.engine.roles import models_of
from app.engine.tensors import Tensors
from app.engine.tokenizer import Tokenizer
from app.errors import ModelNotConfigured
from app.settings import Settings

InspectedRole = Literal["embedder", "lens"]
NO_LENS = (
    "no model here fills masked words or predicts next sentences: set BIFOCAL_LENS to one whose architecture "
    "is BertForPreTraining, or BertForMaskedLM for masked words alone"
)


class InspectedModels:
    """Safe to call from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._opened: dict[InspectedRole, InspectedModel] = {}

    def of_role(self, role: InspectedRole) -> InspectedModel:
        """
        Raises:
            ModelNotConfigured: no model has the role.
            ModelUnavailable: the files of the model are missing or altered.
        """
        with self._lock:
            if role not in self._opened:
                self._opened[role] = self._open(role)
            return self._opened[role]

    def _open(self, role: InspectedRole) -> InspectedModel:
        if role == "embedder":
            return _of_bi_encoder(find_bi_encoder(self._settings.embedder, offline=self._settings.offline))
        found = models_of(role, self._settings)
        if not found:
            raise ModelNotConfigured(NO_LENS)
        return _of_head(found[0])


def _of_bi_encoder(files: BiEncoderFiles) -> InspectedModel:
    return InspectedModel(
        files.name,
        tokenizer=Tokenizer(files.tokenizer_definition()),
        max_tokens=files.max_tokens,
        open_bert=lambda: NumpyBert(_config(files.transformer), Tensors(_weights(files.transformer))),
    )


def _of_head(files: HeadFiles) -> InspectedModel:
    def open_bert() -> NumpyBert:
        if isinstance(files.source, Path):
            return NumpyBert(files.config, Tensors(_weights(files.source)))
        base = files.source.base.transformer  # what training left as it was is there
        return NumpyBert(_config(base), Tensors([*_weights(base), files.source.weights]))

    return InspectedModel(
        files.name,
        tokenizer=Tokenizer(files.tokenizer_definition()),
        max_tokens=files.max_tokens,
        open_bert=open_bert,
    )


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("model*.safetensors"))


def _config(folder: Path) -> Mapping[str, Any]:
    config: Mapping[str, Any] = read_json(folder / "config.json")
    return config
