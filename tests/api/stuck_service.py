"""The service as a process whose model never answers, once it is warm.

python -m tests.api.stuck_service FOLDER PORT
"""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import uvicorn
from numpy.typing import NDArray

from app.engine.bi_encoder import WARM_LENGTHS, BiEncoder
from app.engine.embedder import Embedder
from app.engine.models import find_bi_encoder, load_tokenizer
from app.engine.reading_models import ReadingModels
from app.engine.text_models import TextModels
from app.main import create_app
from app.settings import Settings


class EndlessNetwork:
    runtime = "none"
    n_lanes = 1

    def __init__(self) -> None:
        self._n_answers_left = len(WARM_LENGTHS)

    def forward(self, *inputs: NDArray[np.int64]) -> Sequence[NDArray[np.float32]]:
        if self._n_answers_left:
            self._n_answers_left -= 1
            return [np.ones((len(inputs[0]), 384), dtype=np.float32)]
        threading.Event().wait()
        raise AssertionError


def load(settings: Settings) -> Embedder:
    files = find_bi_encoder(settings.embedder, offline=True)
    return BiEncoder(
        files,
        tokenizer=load_tokenizer(files),
        network=EndlessNetwork(),
        settings=settings,
        farewell_s=3,
    )


if __name__ == "__main__":
    stuck = create_app(
        Settings(home=Path(sys.argv[1]), model_limit_s=1),
        load=load,
        load_reading=lambda _: ReadingModels(),
        load_texts=lambda _: TextModels(),
    )
    uvicorn.run(stuck, port=int(sys.argv[2]), log_level="warning")
