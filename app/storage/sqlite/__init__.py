"""The rows seam, embedded: one SQLite file that the service and the worker share.

Reading order: connection, migrations, collections, aliases, documents, writing, metadata, conditions,
matching, columns, facets, feed, classifiers, jobs, reports, copies, rebuilding, keys, leases, lives; then,
whether it is sound: counting, examination, standing, mending.
"""

from pathlib import Path

from app.storage.sqlite.aliases import AliasRows
from app.storage.sqlite.classifiers import ClassifierRows
from app.storage.sqlite.collections import CollectionRows
from app.storage.sqlite.columns import Columns
from app.storage.sqlite.connection import Database
from app.storage.sqlite.copies import CopyRows
from app.storage.sqlite.documents import DocumentRows
from app.storage.sqlite.facets import FacetRows
from app.storage.sqlite.feed import FeedRows
from app.storage.sqlite.generations import GenerationRows
from app.storage.sqlite.jobs import JobRows
from app.storage.sqlite.keys import KeyRows
from app.storage.sqlite.leases import LeaseRows
from app.storage.sqlite.lives import Life
from app.storage.sqlite.matching import MatchingRows, Memory
from app.storage.sqlite.mending import MendingRows
from app.storage.sqlite.migrations import migrate
from app.storage.sqlite.rebuilding import RebuildRows
from app.storage.sqlite.reports import ReportRows
from app.storage.sqlite.writing import WritingRows

__all__ = ["SqliteRows"]


class SqliteRows(
    CollectionRows,
    AliasRows,
    DocumentRows,
    WritingRows,
    MatchingRows,
    FacetRows,
    FeedRows,
    GenerationRows,
    ClassifierRows,
    JobRows,
    ReportRows,
    CopyRows,
    RebuildRows,
    KeyRows,
    LeaseRows,
    MendingRows,
):
    """`app.storage.rows.Rows` in an SQLite file, for any number of threads and processes of one machine.

    The file is created and brought to the newest schema when it is opened.

    Raises:
        StorageDamaged: the file is damaged, or is not a store.
        SchemaTooNew: a newer version wrote it.
        StorageReadOnly, StorageFull, StorageError: it cannot be opened for writing.
    """

    def __init__(self, path: Path, *, max_size_bytes: int | None = None) -> None:
        """`max_size_bytes` bounds the file as a full disk would."""
        self._database = Database(path, max_size_bytes=max_size_bytes)
        self._life = Life(path.with_name(path.name + "-worker"))
        self._memory = Memory()
        self._columns = Columns()
        try:
            migrate(self._database)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        self._life.close()
        self._database.close()
