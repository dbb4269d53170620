"""Classifiers: every training is a version; one version of each name is active."""

import dataclasses
import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ClassifierNotFound
from app.labels import ClassifierVersion, Confusion, LabelReport, TrainingReport
from app.storage.classifier_rows import TrainedClassifier
from app.storage.sqlite.connection import Database
from app.storage.sqlite.times import from_us, now_us
from app.storage.sqlite.values import from_json

CLASSIFIERS_5 = (
    """
    CREATE TABLE classifiers (
        key INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        is_active INTEGER NOT NULL,
        labels TEXT NOT NULL,
        multi_label INTEGER NOT NULL,
        model TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        n_examples INTEGER NOT NULL,
        examples_digest TEXT NOT NULL,
        scope_threshold REAL NOT NULL,
        report TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        UNIQUE (name, version)
    )
    """,
    "CREATE UNIQUE INDEX classifiers_active ON classifiers (name) WHERE is_active",
    # Little-endian float32, (labels, d) and (labels,).
    """
    CREATE TABLE classifier_weights (
        key INTEGER PRIMARY KEY REFERENCES classifiers (key) ON DELETE CASCADE,
        weights BLOB NOT NULL,
        biases BLOB NOT NULL
    )
    """,
)
STORED_WEIGHT = np.dtype("<f4")


class ClassifierRows:
    _database: Database

    def store_classifier(self, trained: TrainedClassifier, *, n_kept: int) -> ClassifierVersion:
        name = trained.version.name
        with self._database.write() as connection:
            newest = connection.execute("SELECT max(version) FROM classifiers WHERE name = ?", (name,))
            version = (newest.fetchone()[0] or 0) + 1
            connection.execute("UPDATE classifiers SET is_active = 0 WHERE name = ? AND is_active", (name,))
            _insert(connection, trained, version)
            connection.execute(
                "DELETE FROM classifiers WHERE name = ? AND version <= ?", (name, version - n_kept)
            )
            return _require(connection, name, version)

    def classifier(self, name: str, *, version: int | None = None) -> TrainedClassifier:
        with self._database.read() as connection:
            described = _require(connection, name, version)
            row = connection.execute(
                "SELECT w.* FROM classifiers c JOIN classifier_weights w ON w.key = c.key "
                "WHERE c.name = ? AND c.version = ?",
                (name, described.version),
            ).fetchone()
        weights = _numbers(row["weights"]).reshape(len(described.labels), -1)
        return TrainedClassifier(described, weights, _numbers(row["biases"]))

    def classifiers(self) -> Sequence[ClassifierVersion]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM classifiers WHERE is_active ORDER BY name")
            return [_read(row) for row in rows]

    def classifier_versions(self, name: str) -> Sequence[ClassifierVersion]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM classifiers WHERE name = ? ORDER BY version DESC", (name,)
            )
            versions = [_read(row) for row in rows]
        if not versions:
            raise _not_found(name)
        return versions

    def activate_classifier(self, name: str, version: int) -> ClassifierVersion:
        with self._database.write() as connection:
            _require(connection, name, version)
            connection.execute("UPDATE classifiers SET is_active = 0 WHERE name = ? AND is_active", (name,))
            connection.execute(
                "UPDATE classifiers SET is_active = 1 WHERE name = ? AND version = ?", (name, version)
            )
            return _require(connection, name, version)

    def drop_classifier(self, name: str) -> None:
        with self._database.write() as connection:
            if not connection.execute("DELETE FROM classifiers WHERE name = ?", (name,)).rowcount:
                raise _not_found(name)


def _insert(connection: sqlite3.Connection, trained: TrainedClassifier, version: int) -> None:
    described = trained.version
    key = connection.execute(
        "INSERT INTO classifiers (name, version, is_active, labels, multi_label, model, fingerprint, "
        "n_examples, examples_digest, scope_threshold, report, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            described.name,
            version,
            True,
            json.dumps(described.labels),
            described.multi_label,
            described.model,
            described.fingerprint,
            described.n_examples,
            described.examples_digest,
            described.scope_threshold,
            json.dumps(dataclasses.asdict(described.report), allow_nan=False),
            now_us(),
        ),
    ).lastrowid
    connection.execute(
        "INSERT INTO classifier_weights VALUES (?, ?, ?)",
        (key, _blob(trained.weights), _blob(trained.biases)),
    )


def _require(connection: sqlite3.Connection, name: str, version: int | None) -> ClassifierVersion:
    """The active version where none is asked for."""
    row = connection.execute(
        "SELECT * FROM classifiers WHERE name = ?1 AND (version = ?2 OR (?2 IS NULL AND is_active))",
        (name, version),
    ).fetchone()
    if row is None and version is not None:
        raise ClassifierNotFound(f"there is no version {version} of the classifier {name!r}")
    if row is None:
        raise _not_found(name)
    return _read(row)


def _not_found(name: str) -> ClassifierNotFound:
    return ClassifierNotFound(f"there is no classifier {name!r}")


def _read(row: sqlite3.Row) -> ClassifierVersion:
    return ClassifierVersion(
        name=row["name"],
        version=row["version"],
        is_active=bool(row["is_active"]),
        labels=tuple(from_json(row["labels"])),
        multi_label=bool(row["multi_label"]),
        model=row["model"],
        fingerprint=row["fingerprint"],
        n_examples=row["n_examples"],
        examples_digest=row["examples_digest"],
        scope_threshold=row["scope_threshold"],
        report=_read_report(from_json(row["report"])),
        created_at=from_us(row["created_at"]),
    )


def _read_report(stored: dict[str, Any]) -> TrainingReport:
    labels = tuple(LabelReport(**each) for each in stored.pop("labels"))
    confusions = tuple(Confusion(**each) for each in stored.pop("confusions"))
    return TrainingReport(**stored, labels=labels, confusions=confusions)


def _numbers(blob: bytes) -> NDArray[np.float32]:
    return np.frombuffer(blob, dtype=STORED_WEIGHT)


def _blob(numbers: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(numbers, dtype=STORED_WEIGHT).tobytes()
