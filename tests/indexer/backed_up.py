"""Backups of stores, and archives that are almost backups."""

import io
import json
import sqlite3
import tarfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from indexer.backups.making import make_backup
from indexer.backups.restoring import restore_backup
from tests.indexer.ailing_store import Ailing

TABLES = (
    "collections",
    "documents",
    "texts",
    "passages",
    "passage_vectors",
    "document_vectors",
    "metadata_values",
    "classifiers",
    "classifier_weights",
    "api_keys",
    "job_inputs",
    "outcomes",
)


def silent(_stage: str, _share: float) -> None:
    pass


def back_up(store: Ailing, file: Path) -> Path:
    make_backup(store.database, file, silent)
    return file


def restore(file: Path, home: Path, *, is_replaced: bool = False) -> Ailing:
    restore_backup(file, Ailing(home).settings, replace=is_replaced, progress=silent)
    return Ailing(home)


def rows_of(store: Ailing, tables: tuple[str, ...] = TABLES) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(store.database)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables
        }


def altered(file: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """With another manifest."""
    with tarfile.open(file) as archive:
        contents = {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]
    manifest = json.loads(contents["manifest.json"])
    change(manifest)
    return packed(target, {**contents, "manifest.json": json.dumps(manifest).encode()})


def packed(target: Path, contents: Mapping[str, bytes]) -> Path:
    with tarfile.open(target, "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target
