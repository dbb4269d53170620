"""A collection with one passage per document, its writer and its readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.domain import Collection
from app.storage.lexical.committed import Allowed
from app.storage.lexical.reader import LexicalReader
from app.storage.lexical.writer import LexicalWriter
from app.storage.rows import Keys
from app.storage.sqlite import SqliteRows
from tests.storage.building import encoded, make_collection, write


@dataclass
class Library:
    """Documents by id, whose one passage is the text."""

    folder: Path
    rows: SqliteRows
    collection: Collection
    writer: LexicalWriter
    reader: LexicalReader

    @property
    def words(self) -> Path:
        """Folder of the word index."""
        return self.folder / "words"

    def put(self, texts: Mapping[str, str], *, title: str | None = None) -> None:
        write(
            self.rows,
            self.collection,
            *(encoded(document_id, text, n_passages=1, title=title) for document_id, text in texts.items()),
        )

    def delete(self, *document_ids: str) -> None:
        write(self.rows, self.collection, *document_ids)

    def keys(self, *document_ids: str) -> Keys:
        """Keys of their passages, ascending; of all documents if none is named."""
        blocks = list(self.rows.texts_after(self.collection.key, 0))
        stored = [(row.key, row.document_key) for block in blocks for row in block]
        documents = self.rows.documents_by_key([document_key for _, document_key in stored])
        return np.array(
            [
                key
                for key, document_key in stored
                if not document_ids or documents[document_key].id in document_ids
            ],
            np.int64,
        )

    def find(
        self,
        text: str,
        *,
        depth: int = 10,
        allowed: Allowed | None = None,
        reader: LexicalReader | None = None,
    ) -> Sequence[str]:
        """Ids of the documents that match, best first."""
        found = (reader or self.reader).match(text, depth=depth, allowed=allowed)
        documents = self.rows.documents_by_key(found.document_keys.tolist())
        return [documents[key].id for key in found.document_keys.tolist()]

    def another_reader(self) -> LexicalReader:
        return LexicalReader(self.words, self.rows, self.collection.key)

    def another_writer(self) -> LexicalWriter:
        """As after a restart of the worker."""
        self.writer.close()
        self.writer = LexicalWriter(self.words, self.rows, self.collection.key)
        return self.writer


def open_library(folder: Path) -> Library:
    rows = SqliteRows(folder / "rows.sqlite")
    collection = make_collection(rows)
    words = folder / "words"
    return Library(
        folder,
        rows,
        collection,
        LexicalWriter(words, rows, collection.key),
        LexicalReader(words, rows, collection.key),
    )
