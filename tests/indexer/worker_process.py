"""A worker as a process of its own, for tests that kill it.

    python -m tests.indexer.worker_process FOLDER LEASE_S DELAY_S

Encoding takes DELAY_S per call; the word "deadly" ends the process on the spot, and "endless" keeps the model
busy for ever.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from app.engine.embedder import Embeddings
from app.engine.watchdog import Watchdog, end_process
from app.settings import Settings
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from indexer.rebuilding import Rebuild
from indexer.worker import Worker
from tests.indexer.stand_ins import VersionIndex, packaged_tokenizer, read_plain_text
from tests.substitutes import WordHashEmbedder

MODEL_LIMIT_S = 0.5


class FragileEmbedder(WordHashEmbedder):
    def __init__(self, delay_s: float, *, fingerprint: str = "word-hash-1") -> None:
        super().__init__(fingerprint=fingerprint)
        self._delay_s = delay_s
        self._watchdog = Watchdog(
            limit_s=MODEL_LIMIT_S, on_stuck=lambda: end_process("the model stands still")
        )

    def encode_documents(
        self, texts: Sequence[str], *, titles: Sequence[str | None] | None = None, truncate: bool = True
    ) -> Embeddings:
        time.sleep(self._delay_s)
        if any("deadly" in text for text in texts):
            os._exit(9)
        if any("endless" in text for text in texts):
            with self._watchdog.watching():
                threading.Event().wait()
        return super().encode_documents(texts, titles=titles, truncate=truncate)


def main(folder: Path, lease_s: float, delay_s: float) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = Settings(home=folder, lease_s=lease_s)
    rows = SqliteRows(folder / "bifocal.db")
    index = VersionIndex(rows)
    encoder = DocumentEncoder(FragileEmbedder(delay_s), packaged_tokenizer())
    ingestion = Ingestion(rows, index, encoder, InputReader(settings, read_plain_text))
    rebuild = Rebuild(rows, index, encoder, pause=ingestion.paused)
    Worker(rows, index, ingestion, settings=settings, rebuild=rebuild).run(stop)
    rows.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
