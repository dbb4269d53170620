"""`bifocal` as a process with an encoder that costs nothing but a delay.

python -m tests.indexer.cli_process DELAY_S ARGUMENTS...
"""

import sys

from app.engine.embedder import Embedder
from app.settings import Settings
from indexer.__main__ import main
from indexer.cli import composition
from tests.indexer.worker_process import FragileEmbedder

if __name__ == "__main__":
    delay_s = float(sys.argv.pop(1))

    def load(settings: Settings) -> Embedder:
        fingerprint = composition.encoder_files(settings).fingerprint
        return FragileEmbedder(delay_s, fingerprint=fingerprint)

    setattr(composition, "load_embedder", load)  # noqa: B010 - not exported; the model is not the subject
    main()
