"""A store of one collection with real rows and index, filled the way the worker fills it."""

import json
from collections.abc import Mapping
from pathlib import Path

from app.domain import Collection, CollectionSettings, JobInput, JobKind
from app.services.search import Search
from app.settings import Settings
from app.storage.embedded import EmbeddedIndex
from app.storage.sqlite import SqliteRows
from indexer.encoding import DocumentEncoder
from indexer.ingestion import Ingestion
from indexer.inputs import InputReader
from tests.indexer.stand_ins import packaged_tokenizer, read_plain_text
from tests.substitutes import WordHashEmbedder

NAME = "papers"


class Library:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = Settings(home=folder)
        self.rows = SqliteRows(folder / "bifocal.db")
        self.index = EmbeddedIndex(self.rows, folder / "indexes", settings)
        self.embedder = WordHashEmbedder()
        self.search = Search(self.rows, self.index, self.embedder)
        encoder = DocumentEncoder(self.embedder, packaged_tokenizer())
        self._ingestion = Ingestion(self.rows, self.index, encoder, InputReader(settings, read_plain_text))
        self.collection = self._create()

    def _create(self) -> Collection:
        model = self.embedder.description
        return self.rows.create_collection(
            NAME, CollectionSettings(), fingerprint=model.fingerprint, model=model.name
        )[0]

    def put(self, texts: Mapping[str, str], **fields: object) -> None:
        written = [{"id": document_id, "text": text, **fields} for document_id, text in texts.items()]
        self._work(JobKind.DOCUMENTS, written)

    def delete(self, *document_ids: str) -> None:
        self._work(JobKind.DELETE, document_ids)

    def _work(self, kind: JobKind, bodies: object) -> None:
        assert isinstance(bodies, list | tuple)
        self.rows.submit_job(
            self.collection.key,
            kind,
            [JobInput(i, json.dumps(body).encode()) for i, body in enumerate(bodies)],
        )
        claimed = self.rows.claim_job("worker", lease_s=60)
        assert claimed is not None
        self._ingestion.process(claimed, worker="worker")

    def close(self) -> None:
        self.index.close()
        self.rows.close()
