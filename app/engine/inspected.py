"""The models that can be looked into, each opened when it is first asked for."""

from threading import Lock
from typing import Literal

from app.engine.inspection import InspectedModel, inspected_bi_encoder
from app.engine.model_files import find_bi_encoder
from app.settings import Settings

InspectedRole = Literal["embedder"]


class InspectedModels:
    """Safe to call from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._opened: dict[InspectedRole, InspectedModel] = {}

    def of_role(self, role: InspectedRole) -> InspectedModel:
        """
        Raises:
            ModelUnavailable: the files of the model are missing or altered.
        """
        with self._lock:
            if role not in self._opened:
                self._opened[role] = self._open(role)
            return self._opened[role]

    def _open(self, role: InspectedRole) -> InspectedModel:
        assert role == "embedder"
        return inspected_bi_encoder(find_bi_encoder(self._settings.embedder, offline=self._settings.offline))
