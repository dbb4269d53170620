"""`bifocal` as a process that a trap may kill.

python -m tests.crash.process TRAP_FILE stand-in|real ARGUMENTS...

With `stand-in` the encoder costs nothing and there are no other models; all else is as in the product.
"""

import functools
import sys
from importlib import import_module
from pathlib import Path

from app.engine.embedder import Embedder
from app.engine.reading_models import ReadingModels
from app.engine.text_models import TextModels
from app.settings import Settings
from indexer.__main__ import main
from tests.crash.traps import arm
from tests.substitutes import WordHashEmbedder

MAINTENANCE_S = 0.2
"""Instead of every second: more publications in the same time."""
BACK_OFF_S = (0.2, 0.5, 1.0)
"""Instead of up to 30 s after failures of the machine."""


def embedder(_: Settings) -> Embedder:
    return WordHashEmbedder()


def serve_without_models() -> None:
    module = import_module("app.main")  # which the worker does not need
    without_models = functools.partial(
        module.create_app,
        load=embedder,
        load_reading=lambda _: ReadingModels(),
        load_texts=lambda _: TextModels(),
    )
    vars(module)["create_app"] = without_models  # uvicorn finds it by its name


def work_without_model() -> None:
    vars(import_module("indexer.cli.composition"))["load_embedder"] = embedder


def wait_less() -> None:
    vars(import_module("indexer.maintenance"))["ROUND_S"] = MAINTENANCE_S
    vars(import_module("indexer.job_loop"))["BACK_OFF_S"] = BACK_OFF_S


if __name__ == "__main__":
    trap_file, encoder = Path(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    command = sys.argv[1]
    if encoder == "stand-in":
        serve_without_models() if command == "serve" else work_without_model()
    if command == "worker":
        wait_less()
    arm(trap_file)
    main()
