"""A store with everything in it that can be damaged, examined and repaired as the command does it."""

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.domain import CollectionSettings, Document, JobInput, JobKind, SplitterSettings
from app.domain.health import Checked, Status
from app.errors import StorageError
from app.services.doctor.examining import examine
from app.services.doctor.patient import Thoroughness
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.rows import Rows
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from indexer.mending import Mended, Mender
from tests.indexer.stand_ins import packaged_tokenizer, read_plain_text
from tests.storage.rows_classifiers_contract import trained
from tests.substitutes import WordHashEmbedder

NAME = "papers"
N_DOCUMENTS = 400
N_DELETED = 7
N_LATER = 5
"""Documents that came after the base."""
WORDS = [f"word{i}" for i in range(500)]


class Ailing:
    """The rows are opened by each examination, as by each command."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home, exact_limit=0, compact_tail=100)
        self.embedder = WordHashEmbedder()
        self.encoder = DocumentEncoder(self.embedder, packaged_tokenizer())

    @property
    def database(self) -> Path:
        return self.settings.home / "bifocal.db"

    @property
    def indexes(self) -> Path:
        return self.settings.home / "indexes"

    def base(self, view: str = "passages") -> Path:
        (folder,) = self.indexes.glob(f"*/{view}-*")
        return folder

    def words(self) -> Path:
        (folder,) = self.indexes.glob("*/words/[0-9]*")
        return folder

    def execute(self, statement: str, *parameters: object) -> None:
        """Around everything that guards the rows."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            assert connection.execute(statement, parameters).rowcount != 0

    def value(self, query: str) -> object:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query).fetchone()[0]

    def examined(self, **thoroughness: float) -> dict[str, Checked]:
        """By name."""
        with ExitStack() as opened:
            rows: Rows | None
            try:
                rows = SqliteRows(self.database)
                opened.callback(rows.close)
            except StorageError:
                rows = None
            how = Thoroughness(sample=2_000, **thoroughness)  # type: ignore[arg-type]
            checks = examine(self.settings, rows, lambda: self.embedder, how)
        return {check.name: check for check in checks}

    def statuses(self) -> dict[str, Status]:
        """Of the checks that are not well; that no worker runs is left out."""
        return {
            name: check.status
            for name, check in self.examined().items()
            if check.status != "ok" and name != "worker"
        }

    def repaired(self) -> Sequence[Mended]:
        """Until nothing is left to mend."""
        mended: list[Mended] = []
        for _ in range(3):
            checks = list(self.examined().values())
            with self.opened() as (rows, index):
                done = Mender(rows, index, self.indexes, lambda: self.encoder).mend(checks)
            if not done:
                break
            mended += done
        return mended

    @contextmanager
    def opened(self) -> Iterator[tuple[SqliteRows, EmbeddedIndex]]:
        with closing(SqliteRows(self.database)) as rows:
            index = EmbeddedIndex(rows, self.indexes, self.settings)
            try:
                yield rows, index
            finally:
                index.close()

    def documents(self) -> dict[str, Document]:
        """The truth."""
        with self.opened() as (rows, _):
            collection = rows.collection(NAME)
            heads = rows.documents(collection.key, limit=10_000)
            return {head.id: rows.document(collection.key, head.id).document for head in heads}

    def found(self, word: str) -> tuple[list[str], list[str]]:
        """Ids of documents by meaning and by words, best first."""
        with self.opened() as (rows, index):
            collection = rows.collection(NAME)
            query = self.embedder.encode_queries([word]).vectors[0]
            near = index.nearest(collection, "passages", query, depth=20)
            matching = index.matching(collection, word, depth=20)
            heads = rows.documents_by_key([*near.document_keys.tolist(), *matching.document_keys.tolist()])
            return (
                [heads[key].id for key in near.document_keys.tolist()],
                [heads[key].id for key in matching.document_keys.tolist()],
            )


def fill(home: Path) -> None:
    """Documents of several passages, in a base and beside it; deletions; metadata; a classifier."""
    ailing = Ailing(home)
    with ailing.opened() as (rows, index):
        encoder = ailing.encoder
        collection, _ = rows.create_collection(
            NAME,
            CollectionSettings(SplitterSettings(max_tokens=32, overlap_tokens=0)),
            fingerprint=encoder.fingerprint,
            model=encoder.model,
        )
        ingestion = Ingestion(rows, index, encoder, InputReader(ailing.settings, read_plain_text))

        def work(kind: JobKind, bodies: Sequence[object]) -> None:
            inputs = [JobInput(i, json.dumps(body).encode()) for i, body in enumerate(bodies)]
            rows.submit_job(collection.key, kind, inputs)
            claimed = rows.claim_job("worker", lease_s=60)
            assert claimed is not None
            ingestion.process(claimed, worker="worker")

        work(JobKind.DOCUMENTS, [made_document(i) for i in range(N_DOCUMENTS)])
        assert index.maintain(collection)
        work(JobKind.DOCUMENTS, [made_document(N_DOCUMENTS + i) for i in range(N_LATER)])
        work(JobKind.DELETE, [f"d{i}" for i in range(N_DELETED)])
        index.rebuild_words(collection)
        classifier = trained("intents")
        version = replace(classifier.version, fingerprint=encoder.fingerprint)
        rows.store_classifier(replace(classifier, version=version), n_kept=3)


def copy(healthy: Path, home: Path) -> Ailing:
    shutil.copytree(healthy, home)
    return Ailing(home)


def made_document(i: int) -> dict[str, object]:
    """Some passages of words that few others have; the same for the same number."""
    words = np.random.default_rng(i).choice(WORDS, 40)
    return {"id": f"d{i}", "text": f"Document {i}. {' '.join(words)}.", "metadata": {"number": i}}
